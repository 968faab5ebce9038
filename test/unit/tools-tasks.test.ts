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
  it("a task is found among many others, by the turn that its prompt began or joined", async () => {
    const session = engine.add("many");
    const first = queued(session, "p1");
    started(session, "p1", ["p1"]);
    const joined = queued(session, "p2");
    session.emit({ type: "prompt.steered", data: { promptId: "p2" } });
    for (let index = 0; index < 600; index += 1) session.emitText("more");
    session.finishTurn("of the first", { turnId: "p1" });
    const last = queued(session, "p3");
    started(session, "p3", ["p3"]);
    session.finishTurn("of the last", { turnId: "p3", outcome: "failed", isError: true });
    const results = await Promise.all([first, joined, last].map(async (id) => (await get(id))?.reply?.structured));
    expect(results).toMatchObject([
      { status: "idle", result: { result: "of the first" } },
      { status: "idle", result: { result: "of the first" } },
      { status: "error", result: { result: "of the last", isError: true } },
    ]);
  });

  it("a task continues if its turn was lost and resumed", async () => {
    const session = engine.add("lost");
    const own = queued(session, "p1");
    started(session, "p1", ["p1"]);
    const joined = queued(session, "p2");
    session.emit({ type: "prompt.steered", data: { promptId: "p2" } });
    session.endTurn({ turnId: "p1", outcome: "lost", isError: true, errorSubtype: "lost" });
    started(session, "p1.rerun", ["p1"]);
    session.finishTurn("in the end", { turnId: "p1.rerun" });
    for (const taskId of [own, joined]) {
      expect(await get(taskId)).toMatchObject({
        status: "completed",
        reply: { structured: { result: { result: "in the end", isError: false } } },
      });
    }
  });

  it("a task was lost permanently if another prompt begins after its lost turn", async () => {
    const session = engine.add("gone");
    const own = queued(session, "p1");
    started(session, "p1", ["p1"]);
    session.endTurn({ turnId: "p1", outcome: "lost", isError: true, errorSubtype: "lost", message: "It died." });
    started(session, "p2", ["p2"]);
    session.finishTurn("of another", { turnId: "p2" });
    expect(await get(own)).toMatchObject({ status: "completed", statusMessage: "It died." });
  });

  it.each([
    ["dropped", "cancelled"],
    ["closed", "the session was closed"],
  ])("a task whose prompt was never run is cancelled: %s", async (why, words) => {
    const session = engine.add(why);
    const own = queued(session, "p1");
    if (why === "dropped") session.emit({ type: "prompt.dropped", data: { promptId: "p1", reason: "cancelled" } });
    else session.emit({ type: "session.closed", data: { reason: "closed", by: "caller" } });
    const answer = await get(own);
    expect(answer).toMatchObject({ status: "cancelled", statusMessage: `The prompt was not run: ${words}.` });
    expect(answer?.reply).toBeUndefined();
  });
});

describe("a prompt that is held", () => {
  it("the task of a held prompt is working, and names the tool that can release the prompt", async () => {
    const session = engine.add("held");
    const own = queued(session, "p1");
    session.state.queue.push({ promptId: "p1", eventId: 1, held: true });
    const answer = await get(own);
    expect(answer?.status).toBe("working");
    expect(answer?.statusMessage).toContain("claude_code_session");
  });
});

describe("the name of a task", () => {
  it("a task id is parsed only in its written form", () => {
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
