import { describe, expect, it } from "vitest";
import { jsonBytes } from "../../src/view/size.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";
import type { FakeSession } from "../kit/tools/fake-session.ts";
import { runForAnswer, run } from "../kit/tools/run.ts";

interface Part {
  sessionId: string;
  status: string;
  nextCursor: number;
  events: { data: { text?: string } }[];
  actions?: { requestId: string }[];
  result?: { result: string };
  truncated?: true;
  truncatedFields?: string[];
}
interface Several {
  woke?: string;
  sessions: Part[];
}

const poll = async (engine: FakeEngine, sessions: object[], args: object = {}) => {
  const answer = await runForAnswer(engine, "_check", { action: "poll", sessions, waitMs: 0, ...args });
  return answer as unknown as Several;
};

function several(...ids: string[]): { engine: FakeEngine; sessions: FakeSession[] } {
  const engine = new FakeEngine();
  const sessions = ids.map((id) => engine.add(id));
  for (const session of sessions) session.startTurn();
  return { engine, sessions };
}

describe("claude_code_check over several sessions", () => {
  it("a poll waits for all sessions, and reports in `woke` which session ended the wait", async () => {
    const { engine, sessions } = several("a", "b", "c");
    setTimeout(() => sessions[1]?.openRequest(), 20);
    const cursors = ["a", "b", "c"].map((sessionId) => ({ sessionId, cursor: 2 }));
    const answer = await poll(engine, cursors, { waitMs: 5_000 });
    expect(answer.woke).toBe("b");
    expect(answer.sessions).toMatchObject([
      { sessionId: "a", status: "running", nextCursor: 2, events: [] },
      { sessionId: "b", status: "waiting_permission", nextCursor: 3, actions: [{ requestId: "r1" }] },
      { sessionId: "c", status: "running", nextCursor: 2, events: [] },
    ]);
    expect(engine.delivers).toEqual([[{ requestId: "r1", whole: true }]]);
  });

  it("an idle session does not end the wait while a turn runs in another session", async () => {
    const { engine, sessions } = several("a", "b");
    const [a, b] = sessions;
    a?.finishTurn("old");
    const cursors = [{ sessionId: "a", cursor: 4 }, { sessionId: "b" }];
    setTimeout(() => b?.finishTurn("new"), 20);
    const answer = await poll(engine, cursors, { waitMs: 5_000 });
    expect(answer.woke).toBe("b");
    // The result of session a came before its cursor.
    expect(answer.sessions.map(({ result }) => result?.result)).toEqual([undefined, "new"]);
    const rest = await poll(
      engine,
      answer.sessions.map(({ nextCursor: cursor, sessionId }) => ({ sessionId, cursor })),
      {
        waitMs: 30_000,
      },
    );
    expect(rest).not.toHaveProperty("woke");
  });

  it("a poll with `until` event keeps waiting if the event is not shown", async () => {
    const { engine, sessions } = several("a", "b");
    setTimeout(() => sessions[0]?.emit({ type: "session.configured", data: {} }), 10);
    setTimeout(() => sessions[1]?.emitText("now"), 30);
    const cursors = ["a", "b"].map((sessionId) => ({ sessionId, cursor: 2 }));
    const answer = await poll(engine, cursors, { waitMs: 5_000, until: "event" });
    expect(answer).toMatchObject({ woke: "b", sessions: [{ events: [] }, { events: [{ data: { text: "now" } }] }] });
  });

  it("polls stay within 8,192 bytes, advance every session eventually, and report every event once", async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `session-${String(index)}`);
    const { engine, sessions } = several(...ids);
    for (const [index, session] of sessions.entries()) {
      for (let line = 0; line < index * 3; line += 1) session.emitText(`${String(line)} ${"word ".repeat(60)}`);
    }
    const counts = new Map(ids.map((id) => [id, 0]));
    let cursors: { sessionId: string; cursor: number }[] = ids.map((sessionId) => ({ sessionId, cursor: 1 }));
    for (let round = 0; ; round += 1) {
      expect(round).toBeLessThan(40);
      const answer = await poll(engine, cursors, { maxBytes: 8_192 });
      expect(jsonBytes(answer)).toBeLessThanOrEqual(8_192);
      for (const { events = [], sessionId } of answer.sessions)
        counts.set(sessionId, (counts.get(sessionId) ?? 0) + events.length);
      cursors = answer.sessions.map(({ nextCursor: cursor, sessionId }) => ({ sessionId, cursor }));
      if (!answer.sessions.some(({ truncated }) => truncated)) break;
    }
    expect([...counts.values()]).toEqual(ids.map((_, index) => index * 3));
  });

  it.each<[object, string]>([
    [{}, "sessionId: is required. Use sessions to poll several."],
    [{ sessionId: "a", sessions: [{ sessionId: "b" }] }, "sessions: cannot be combined with sessionId."],
    [{ sessions: [] }, "sessions: must have at least 1 entry"],
    [{ sessions: [{ sessionId: "a" }, { sessionId: "a" }] }, "sessions: names a twice."],
    [{ sessions: [{ sessionId: "a" }], cursor: 4 }, "cursor: cannot be combined with sessions"],
    [{ sessions: [{ sessionId: "a", curser: 4 }] }, "sessions.0.curser: unknown option. Did you mean cursor?"],
    [
      { sessions: Array.from({ length: 51 }, (_, index) => ({ sessionId: String(index) })) },
      "sessions: must have at most 50",
    ],
    [{ sessions: [{ sessionId: "a" }, { sessionId: "b" }], maxBytes: 2_048 }, "maxBytes: must be at least 2"],
    [{ sessions: [{ sessionId: "a" }], eventId: 1 }, "sessions: cannot be combined with eventId"],
    [{ sessions: [{ sessionId: "a" }], action: "respond_permission" }, "sessions: is only allowed with action poll"],
    [{ action: "answer_question" }, "sessionId: is required for action answer_question."],
  ])("a poll with %j is refused", async (args, problem) => {
    const { engine } = several("a", "b");
    const reply = await run(engine, "_check", { action: "poll", waitMs: 0, ...args });
    expect(reply.text).toContain(`Error [INVALID_ARGUMENT]: ${problem}`);
  });

  it("the error names a session that does not exist", async () => {
    const { engine } = several("a");
    const reply = await run(engine, "_check", { action: "poll", sessions: [{ sessionId: "a" }, { sessionId: "x" }] });
    expect(reply).toMatchObject({ isError: true, structured: { code: "SESSION_NOT_FOUND", sessionId: "x" } });
  });
});
