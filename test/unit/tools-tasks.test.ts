import { describe, expect, it } from "vitest";
import { runTaskMethod } from "../../src/mcp/tasks/methods.ts";
import { readTaskId, writeTaskId } from "../../src/mcp/tasks/task-id.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import type { FakeSession } from "../kit/tools/fake-session.ts";

/** Finds the outcome of a prompt in a log with many other events. */

const engine = new FakeEngine();

function queued(session: FakeSession, promptId: string): string {
  const eventId = session.emit({ type: "prompt.queued", data: { promptId, text: "x" } });
  return writeTaskId({ sessionId: session.id, eventId, promptId });
}

const started = (session: FakeSession, turnId: string, promptIds: string[]) =>
  session.emit({ type: "turn.started", data: { turnId, origin: "prompt", promptIds } });

const get = async (taskId: string) => runTaskMethod("tasks/get", { taskId }, callOf(), depsOf(engine));

describe("a task whose turn is over", () => {
  it("is found among many others, by the turn that its prompt began or joined", async () => {
    const session = engine.add("many");
    const first = queued(session, "p1");
    started(session, "p1", ["p1"]);
    const joined = queued(session, "p2");
    session.emit({ type: "prompt.steered", data: { promptId: "p2" } });
    for (let index = 0; index < 600; index += 1) session.says("more");
    session.ends("of the first", { turnId: "p1" });
    const last = queued(session, "p3");
    started(session, "p3", ["p3"]);
    session.ends("of the last", { turnId: "p3", outcome: "failed", isError: true });
    const results = await Promise.all([first, joined, last].map(async (id) => (await get(id))?.reply?.structured));
    expect(results).toMatchObject([
      { status: "idle", result: { result: "of the first" } },
      { status: "idle", result: { result: "of the first" } },
      { status: "error", result: { result: "of the last", isError: true } },
    ]);
  });

  it("continues if its turn was lost and resumed", async () => {
    const session = engine.add("lost");
    const own = queued(session, "p1");
    started(session, "p1", ["p1"]);
    const joined = queued(session, "p2");
    session.emit({ type: "prompt.steered", data: { promptId: "p2" } });
    session.endsTurn({ turnId: "p1", outcome: "lost", isError: true, errorSubtype: "lost" });
    started(session, "p1.rerun", ["p1"]);
    session.ends("in the end", { turnId: "p1.rerun" });
    for (const taskId of [own, joined]) {
      expect(await get(taskId)).toMatchObject({
        status: "completed",
        reply: { structured: { result: { result: "in the end", isError: false } } },
      });
    }
  });

  it("was lost permanently if another prompt begins after it", async () => {
    const session = engine.add("gone");
    const own = queued(session, "p1");
    started(session, "p1", ["p1"]);
    session.endsTurn({ turnId: "p1", outcome: "lost", isError: true, errorSubtype: "lost", message: "It died." });
    started(session, "p2", ["p2"]);
    session.ends("of another", { turnId: "p2" });
    expect(await get(own)).toMatchObject({ status: "completed", statusMessage: "It died." });
  });

  it.each([
    ["dropped", "cancelled"],
    ["closed", "the session was closed"],
  ])("was never run: %s", async (why, words) => {
    const session = engine.add(why);
    const own = queued(session, "p1");
    if (why === "dropped") session.emit({ type: "prompt.dropped", data: { promptId: "p1", reason: "cancelled" } });
    else session.emit({ type: "session.closed", data: { reason: "closed", by: "caller" } });
    const told = await get(own);
    expect(told).toMatchObject({ status: "cancelled", statusMessage: `The prompt was not run: ${words}.` });
    expect(told?.reply).toBeUndefined();
  });
});

describe("a prompt that is held", () => {
  it("is working as long as it can still be run, and its task says by whom", async () => {
    const session = engine.add("held");
    const own = queued(session, "p1");
    session.state.queue.push({ promptId: "p1", eventId: 1, held: true });
    const told = await get(own);
    expect(told?.status).toBe("working");
    expect(told?.statusMessage).toContain("claude_code_session");
  });
});

describe("the name of a task", () => {
  it("is parsed in its written form, and in no other way", () => {
    const id = { sessionId: "11111111-1111-4111-8111-111111111111", eventId: 42, promptId: "p-1" };
    const text = writeTaskId(id);
    expect(readTaskId(text)).toEqual(id);
    for (const wrong of [
      "",
      `${text}.`,
      `x.${text}`,
      text.replace(".42.", ".042."),
      text.replace(".42.", ".0."),
      `${text}\n`,
    ]) {
      expect(readTaskId(wrong)).toBeUndefined();
    }
  });
});
