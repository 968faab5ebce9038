import { describe, expect, it } from "vitest";
import { buildPayload } from "../../src/approvers/webhook/payload.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { waitingField, waitingText } from "../../src/domain/standstill.ts";
import { session as sessionPage, sessionEvents } from "../../src/mcp/resources/session-documents.ts";
import { runTaskMethod } from "../../src/mcp/tasks/methods.ts";
import { writeTaskId } from "../../src/mcp/tasks/task-id.ts";
import { jsonBytes } from "../../src/view/size.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { ENDED, NOW, type FakeSession } from "../kit/tools/fake-session.ts";
import { check, run, runForAnswer, runList, runTool, tools } from "../kit/tools/run.ts";

const UNTIL = "2026-01-01T03:00:00.250Z";
const WAITING = { kind: "usage_limit", window: "five_hour", until: UNTIL } as const;

/** Returns an engine with a session whose turn waits at a limit. */
function waitingEngine(state: Partial<SessionState> = {}): { engine: FakeEngine; session: FakeSession } {
  const engine = new FakeEngine();
  const session = engine.add("s1");
  session.emit({ type: "prompt.queued", data: { promptId: "t1", text: "x" } });
  session.startTurn();
  const since = NOW;
  session.state.waiting = { kind: "usage_limit", window: "five_hour", until: Date.parse(UNTIL), since };
  Object.assign(session.state, state);
  return { engine, session };
}

const STARTING = { phase: "starting", id: "p", startingMs: 0, waiting: true, again: 0 } as const;
const SLOT = { process: { phase: "starting", waiting: true } } as Partial<SessionState>;

describe("a session that stands still", () => {
  it.each(["minimal", "delta_compact", "full"])(
    "`claude_code_check` in mode %s shows `waiting`",
    async (responseMode) => {
      const { engine } = waitingEngine();
      expect(await check(engine, { responseMode })).toMatchObject({ status: "running", waiting: WAITING });
    },
  );

  it("a poll of several sessions shows the wait of each, also without room for more", async () => {
    const { engine, session } = waitingEngine();
    const ids = Array.from({ length: 12 }, (_, index) => `s${String(index + 2)}`);
    for (const id of ids) {
      const other = engine.add(id);
      other.startTurn();
      other.state.waiting = session.state.waiting!;
      other.emitText("x".repeat(5_000));
    }
    const sessions = ["s1", ...ids].map((sessionId) => ({ sessionId }));
    const args = { action: "poll", sessions, waitMs: 0, maxBytes: 8_192 };
    const answer = await runForAnswer(engine, "_check", args);
    expect(answer.sessions).toMatchObject(sessions.map((each) => ({ ...each, waiting: WAITING })));
    expect(JSON.stringify(answer)).toContain('"truncatedFields":["events","actions","result"]');
  });

  it("a poll recommends to look again after a minute, for a slot after 3 s", async () => {
    const { engine, session } = waitingEngine();
    const mode = { responseMode: "delta_compact" };
    expect(await check(engine, mode)).toMatchObject({ pollInterval: 60_000 });
    delete session.state.waiting;
    Object.assign(session.state, SLOT);
    expect(await check(engine, mode)).toMatchObject({ waiting: { kind: "slot" }, pollInterval: 3_000 });
  });

  it("a started session, and a reply that is queued, say that the session waits", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = ({ state }) => {
      state.waiting = { kind: "budget", until: Date.parse(UNTIL), since: NOW };
    };
    const waiting = { kind: "budget", until: UNTIL };
    const { sessionId } = (await runForAnswer(engine, "", { prompt: "x" })) as unknown as { sessionId: string };
    expect(await check(engine, { sessionId })).toMatchObject({ waiting });
    engine.sessions.get(sessionId)?.endTurn();
    expect(await runForAnswer(engine, "_reply", { sessionId, prompt: "x" })).toMatchObject({ waiting });
  });

  it("an answer about a turn that has just begun leaves out the moment in which its process waits for a slot", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = ({ state }) => {
      state.process = { ...STARTING, since: NOW };
    };
    const started = (await runForAnswer(engine, "", { prompt: "x" })) as unknown as { sessionId: string };
    expect(started).not.toHaveProperty("waiting");
    const { sessionId } = started;
    expect(await check(engine, { sessionId })).not.toHaveProperty("waiting");
    engine.sessions.get(sessionId)!.state.process = { ...STARTING, since: NOW - 2_000 };
    expect(await check(engine, { sessionId })).toMatchObject({ waiting: { kind: "slot" } });
  });

  it("get, list and the resources show `waiting`", async () => {
    const { engine } = waitingEngine();
    const { sessions } = await runForAnswer(engine, "_session", { action: "get", sessionId: "s1" });
    expect(sessions).toMatchObject([{ status: "running", waiting: WAITING }]);
    const [listed] = (await runList(engine)).sessions;
    expect(listed).toMatchObject({ status: "running", waiting: { ...WAITING, until: "2026-01-01T03:00:00Z" } });
    const reading = callOf();
    for (const page of [sessionPage, sessionEvents]) {
      const text = await page.read("s1", new URLSearchParams(), reading, depsOf(engine));
      expect(JSON.parse(text)).toMatchObject({ status: "running", waiting: WAITING });
    }
  });

  it("a list leaves out the time before the kind, if 300 bytes have no room", async () => {
    const { engine, session } = waitingEngine();
    session.state.reported = { model: "m".repeat(64), permissionMode: "bypassPermissions" };
    const window = "seven_day_of_a_model_with_a_long_name";
    session.state.waiting = { kind: "usage_limit", window, until: Date.parse(UNTIL), since: NOW };
    const [listed = {}] = (await runList(engine)).sessions;
    expect(jsonBytes(listed) + 1).toBeLessThanOrEqual(300);
    expect(listed["waiting"]).toEqual({ kind: "usage_limit" });
  });

  it("a task says what its prompt waits for, running or held back", async () => {
    const { engine, session } = waitingEngine();
    const taskId = writeTaskId({ sessionId: "s1", eventId: 1, promptId: "t1" });
    const prompt = { promptId: "t1", eventId: 1 };
    const get = async () => runTaskMethod("tasks/get", { taskId }, callOf(), depsOf(engine));
    const wait = `waits at the limit of the 5-hour window, until ${UNTIL}.`;
    session.state.turn!.prompt = prompt;
    expect(await get()).toMatchObject({ status: "working", statusMessage: `The turn ${wait}` });
    session.state.turn = null;
    session.state.queue = [{ ...prompt, held: true }];
    // No server looks again at a session without a turn, so its wait ends with the time.
    const stopped = expect.stringContaining("Held: the turn before it was stopped or lost") as string;
    expect(await get()).toMatchObject({ statusMessage: stopped });
    const far = "2100-01-01T00:00:00.000Z";
    session.state.waiting = { kind: "usage_limit", window: "five_hour", until: Date.parse(far), since: NOW };
    const held = expect.stringContaining(`Held: the queue ${wait.replace(UNTIL, far)} Run or drop it`) as string;
    expect(await get()).toMatchObject({ status: "working", statusMessage: held });
  });

  it("a closed session, one at work and one that installs Claude Code do not wait", () => {
    const closed = { closed: { reason: "closed", by: "x", at: NOW } } as const;
    const { session } = waitingEngine(closed);
    expect(waitingField(session.state)).toEqual({});
    const installs = { waiting: undefined, process: { phase: "starting", waiting: true, installing: true } };
    expect(waitingText(waitingEngine(installs as unknown as SessionState).session.state)).toBe("");
  });

  it("a reset beyond all calendars is shown as their end", () => {
    const { session } = waitingEngine();
    session.state.waiting = { kind: "usage_limit", until: 1e18, since: NOW };
    expect(waitingField(session.state)).toMatchObject({ waiting: { until: "+275760-09-13T00:00:00.000Z" } });
  });
});

describe("a turn that ended at a limit", () => {
  const limit = { window: "five_hour", resetsAt: Date.parse(UNTIL) };
  const ended = { outcome: "failed", isError: true, category: "limit", errorSubtype: "usage_limit", limit } as const;

  it("the result has the window, the time of its reset, and the advice to continue", async () => {
    const { engine, session } = waitingEngine();
    session.finishTurn("You've hit your 5-hour limit", ended);
    const advice = expect.stringContaining("claude_code_session, continue") as string;
    const result = { errorSubtype: "usage_limit", category: "limit", window: "five_hour", resetsAt: UNTIL, advice };
    for (const responseMode of ["minimal", "delta_compact", "full"])
      expect(await check(engine, { responseMode })).toMatchObject({ result });
  });

  it.each(["claude_code_query", "claude_direct_query"])(
    "`%s` reports the limit and the time of its reset",
    async (name) => {
      const engine = new FakeEngine();
      engine.onPrompt = (session) => {
        session.emit({ type: "prompt.queued", data: { promptId: "t1", text: "x" } });
        session.startTurn();
        session.finishTurn("You've hit your 5-hour limit", ended);
      };
      const call = callOf();
      const { structured } = await runTool(tools.get(name)!, { prompt: "x" }, call, depsOf(engine));
      const failure = { category: "limit", window: "five_hour", resetsAt: UNTIL };
      expect(structured).toMatchObject(name === "claude_code_query" ? { result: failure } : failure);
      expect(JSON.stringify(structured)).toContain("limit (usage_limit)");
    },
  );

  it("the notice of the webhook has the window and the time of its reset", () => {
    const notice = { id: "1", type: "turn.ended", at: NOW, version: "1" } as const;
    const session = { id: "s1", principal: "local", cwd: "/" };
    const { payload } = buildPayload({ ...notice, session }, { ended: { ...ENDED, ...ended } }, (fields) => fields);
    expect(payload).toMatchObject({
      turn: { errorSubtype: "usage_limit", window: "five_hour", resetsAt: UNTIL, costUsd: 0.01 },
    });
  });

  it.each(["plan_reserve", "overage"])(
    "a turn interrupted for %s has the advice to reply later",
    async (errorSubtype) => {
      const { engine, session } = waitingEngine();
      session.endTurn({ outcome: "interrupted", isError: true, category: "limit", errorSubtype });
      const advice = expect.stringMatching(/^Reply to go on once the window has reset/) as string;
      expect(await check(engine)).toMatchObject({ status: "idle", result: { errorSubtype, retryable: true, advice } });
    },
  );

  it("action continue answers like a started turn", async () => {
    const { engine } = waitingEngine();
    const answer = await run(engine, "_session", { action: "continue", sessionId: "s1" });
    expect(answer.structured).toEqual({
      sessionId: "s1",
      status: "running",
      waiting: WAITING,
      nextCursor: 1,
      pollInterval: 60_000,
    });
  });
});
