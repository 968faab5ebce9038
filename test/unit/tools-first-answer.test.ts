import { beforeEach, describe, expect, it } from "vitest";
import type { SessionState } from "../../src/domain/session.ts";
import { ConnectionNote } from "../../src/tools/connection-note.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { runTool, tools } from "../kit/tools/run.ts";

let engine: FakeEngine;
beforeEach(() => (engine = new FakeEngine()));

async function worked(id: string, state: Partial<SessionState>): Promise<void> {
  engine.add(id);
  const record = await engine.get("local", id);
  engine.unattended.push({ ...record, state: { ...record.state, turn: null, ...state } });
}

/** Runs `calls` of one connection in order; returns `unattended` of each answer. */
async function answersTo(...calls: [tool: string, args: object][]): Promise<unknown[]> {
  const deps = { ...depsOf(engine), first: new ConnectionNote("Work goes on.") };
  const notes: unknown[] = [];
  for (const [tool, args] of calls) {
    const { isError, structured, text } = await runTool(tools.get(tool)!, args, callOf(), deps);
    expect(isError ? text : JSON.parse(text)).toEqual(isError ? text : structured);
    notes.push(structured["unattended"]);
  }
  return notes;
}

const LIST: [string, object] = ["claude_code_session", { action: "list" }];

describe("the first answer to a client", () => {
  it("the first answer says once what becomes of the client's work", async () => {
    const deps = { ...depsOf(engine), first: new ConnectionNote("Work goes on.") };
    const list = async () => (await runTool(tools.get("claude_code_session")!, LIST[1], callOf(), deps)).structured;
    expect(await list()).toMatchObject({ note: "Work goes on." });
    expect(await list()).not.toHaveProperty("note");
  });

  it("the first answer names the sessions that continued unattended and their outcomes; the next does not", async () => {
    await worked("one", { lastOutcome: "done" });
    await worked("two", { attendance: { leftMs: 0, work: { leftMs: -1, leftUsd: 9, over: "time" } } });
    const first = "2 sessions continued unattended: one (done), two (stopped by the limit of unattended time)";
    expect(await answersTo(LIST, LIST)).toEqual([first, undefined]);
  });

  it("the first answer only counts the sessions beyond five", async () => {
    for (let n = 1; n <= 7; n += 1) await worked(`s${String(n)}`, { lastOutcome: "failed" });
    const [first] = await answersTo(LIST);
    expect(first).toMatch(/^7 sessions continued unattended: s1 \(failed\), .*s5 \(failed\), 2 more$/);
  });

  it("`unattended` is missing without such a session, in an answer with `maxBytes`, and after an error", async () => {
    expect(await answersTo(LIST)).toEqual([undefined]);
    await worked("one", { lastOutcome: "done" });
    const poll = { action: "poll", sessionId: "one", waitMs: 0 };
    const first = "1 session continued unattended: one (done)";
    expect(
      await answersTo(
        ["claude_code_check", { ...poll, sessionId: "none" }],
        ["claude_code_check", { ...poll, maxBytes: 2_000 }],
        ["claude_code_check", poll],
      ),
    ).toEqual([undefined, undefined, first]);
  });
});
