import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { waitEliciting, type PlainWait } from "../../src/tools/elicitation/eliciting-wait.ts";
import { readableSession } from "../../src/tools/readable-session.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => vi.useRealTimers());

it("a call that waits for the end and is woken before waits on for the rest of its time only", async () => {
  const engine = new FakeEngine();
  engine.add().startTurn();
  const call = { ...callOf(), client: { elicitation: "between", tasks: false } as const };
  const deps = { ...depsOf(engine), approvalChain: ["user"] as const };
  const target = { view: readableSession("s1", call, deps), cursor: 1 };
  const waits: [until: string, ms: number][] = [];
  const plain: PlainWait = async (_, until, ms) => {
    waits.push([until, ms]);
    await nextTurn();
    vi.advanceTimersByTime(400);
    return waits.length < 3 ? "s1" : undefined;
  };
  const waiting = { tool: "claude_code_check", work: {}, waitMs: 1_000 };
  const outcome = await waitEliciting(plain, { targets: [target], until: "end" }, waiting, { call, deps });
  expect(outcome).toEqual({ woke: undefined });
  expect(waits).toEqual([
    ["news", 1_000],
    ["news", 600],
    ["news", 200],
  ]);
});
