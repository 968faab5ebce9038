import { expect, it } from "vitest";
import type { SessionState } from "../../src/domain/session.ts";
import type { Policy } from "../../src/engine/policy/policy.ts";
import { AGENT_TASK, T0, Walk } from "../kit/step/walk.ts";

/** A turn that waits at a limit needs no process and no server meanwhile. */

const WAITING = { kind: "usage_limit", window: "five_hour", since: T0 } as const;

function waitingWalk(over: Partial<SessionState>, policy: Partial<Policy> = {}): Walk {
  const walk = new Walk(policy).prompt("p1").hear({ type: "started", resumed: false }, { type: "ready" });
  walk.state = { ...walk.state, ...over };
  return walk;
}

function suspended(over: Partial<SessionState>): [summary: string, phase: string] {
  const walk = waitingWalk(over).command("control", { by: "server", request: { do: "suspend" } });
  expect(walk.state.turn).toMatchObject({ id: "p1" });
  return [walk.summary, walk.state.process.phase];
}

it("a turn that waits at a limit gives up its process, also with prompts behind it, and stays", () => {
  expect(suspended({ waiting: WAITING })).toEqual(["ok stop", "ending"]);
  expect(suspended({ waiting: WAITING, queue: [{ promptId: "p2", eventId: 1 }] })).toEqual(["ok stop", "ending"]);
});

it("a turn that runs or has background tasks keeps its process until its end", () => {
  expect(suspended({})).toEqual(["ok", "live"]);
  expect(suspended({ waiting: WAITING, background: [AGENT_TASK] })).toEqual(["ok", "live"]);
});

it("a turn that waits at a limit outlives an orderly end of its server, with the prompts behind it", () => {
  const queue = [{ promptId: "p2", eventId: 1 }];
  const walk = waitingWalk({ waiting: WAITING, queue }).take({ type: "shutdown", at: T0 });
  expect([walk.summary, walk.state.turn?.id, walk.state.queue]).toEqual(["stop", "p1", queue]);
});

it("an orderly end of the server interrupts a turn that runs, or whose session is not kept", () => {
  for (const [over, policy] of [[{}], [{ waiting: WAITING }, { ephemeral: true }]] as const) {
    const walk = waitingWalk(over, policy).take({ type: "shutdown", at: T0 });
    expect(walk.ended).toMatchObject([{ errorSubtype: "shutdown" }]);
  }
});
