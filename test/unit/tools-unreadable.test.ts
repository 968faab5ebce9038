import { describe, expect, it } from "vitest";
import type { StoredEvent } from "../../src/domain/event.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import type { SessionRecord } from "../../src/engine/ports.ts";
import { describeTask } from "../../src/mcp/tasks/task.ts";
import { followTurn } from "../../src/tools/blocking/follow.ts";
import type { ReadableSession } from "../../src/tools/readable-session.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";

/** Answers about a prompt whose turn cannot be read to its end. */

const event = (id: number, what: Pick<StoredEvent, "type" | "data">) => ({ id, at: id, ...what }) as StoredEvent;
const PROMPT = event(1, { type: "prompt.queued", data: { promptId: "p1", text: "Do it." } });
const turnStarted = (id: number, promptId: string) =>
  event(id, { type: "turn.started", data: { turnId: promptId, origin: "prompt", promptIds: [promptId] } });
const lost = (id: number, type: string) =>
  event(id, { type: "notice", data: { kind: "data_loss", message: `Event ${String(id)}.`, details: { type } } });
const ended = (id: number, turnId: string) =>
  event(id, {
    type: "turn.ended",
    data: {
      turnId,
      outcome: "done",
      isError: false,
      durationMs: 1,
      durationApiMs: 1,
      numTurns: 1,
      costUsd: 1,
      sessionTurns: 1,
      sessionCostUsd: 1,
    },
  });

function viewOf(events: readonly StoredEvent[], over: Partial<SessionRecord> = {}): ReadableSession {
  const state: SessionState = { ...initialState(0), lastEventId: events.length };
  const record = { id: "s1", principal: "local", spec: { cwd: "/" }, policy: undefined, title: undefined } as const;
  const times = { createdAt: 0, updatedAt: 0, rev: 1 };
  return {
    id: "s1",
    record: async () => Promise.resolve({ ...record, ...times, owner: undefined, state, ...over }),
    read: async (from, limit) => Promise.resolve(events.slice(from - 1, from - 1 + limit)),
    wait: async () => Promise.resolve({ woke: undefined }),
  };
}

const reading = { call: callOf(), deps: depsOf(new FakeEngine()) };
const task = async (view: ReadableSession) => describeTask({ taskId: "t", view, prompt: PROMPT as never }, reading);
const DAMAGED = { unreadable: { why: "state: not valid JSON", isNewer: false } };

describe("a task", () => {
  it("the task of an unreadable session is completed with the reason, not reported as never run", async () => {
    const answer = await task(viewOf([PROMPT, turnStarted(2, "p1")], DAMAGED));
    expect(answer).toMatchObject({
      status: "completed",
      statusMessage: expect.stringContaining("state: not valid JSON"),
    });
    expect(JSON.stringify(answer.reply)).toContain(String.raw`\"errorSubtype\":\"unreadable\"`);
  });

  it("a task whose end cannot be read says so, and does not report the end of the next turn", async () => {
    const events = [PROMPT, turnStarted(2, "p1"), lost(3, "turn.ended"), turnStarted(4, "p2"), ended(5, "p2")];
    expect(await task(viewOf(events))).toMatchObject({
      status: "completed",
      statusMessage: "The end of the turn cannot be read.",
    });
  });

  it("a task that lost another event reports its end", async () => {
    const events = [PROMPT, turnStarted(2, "p1"), lost(3, "message"), ended(4, "p1")];
    expect(await task(viewOf(events))).toMatchObject({ status: "completed", statusMessage: "Done" });
  });
});

describe("a call that waits for the end of a turn", () => {
  const follow = async (view: ReadableSession) =>
    followTurn(
      view,
      {
        cursor: 1,
        waiting: {} as never,
        onEvent: async () => Promise.resolve(),
        recall: () => undefined,
        onSilence: () => undefined,
      },
      reading.call,
      reading.deps,
    );

  it("a waiting call ends when the session cannot be read and no server runs the session", async () => {
    const because = expect.stringContaining("The session cannot be read (state: not valid JSON)");
    expect(await follow(viewOf([PROMPT, turnStarted(2, "p1")], DAMAGED))).toMatchObject({ why: "cancelled", because });
  });

  it("a waiting call ends when the end of the turn cannot be read", async () => {
    const left = await follow(viewOf([PROMPT, turnStarted(2, "p1"), lost(3, "turn.ended")]));
    expect(left).toEqual({ why: "cancelled", because: "The end of the turn cannot be read." });
  });
});
