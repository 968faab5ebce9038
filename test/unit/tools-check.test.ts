import { describe, expect, it } from "vitest";
import { runTool as runToolOrAsk, type ToolCall, type ToolDeps } from "../../src/tools/define.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { runForAnswer, check, tools } from "../kit/tools/run.ts";

describe("claude_code_check, poll", () => {
  it("a poll reports events after the cursor, without irrelevant fields", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emit({ type: "process.started", data: { processId: "1", resumed: false } });
    session.emitText("I look around.");
    session.emit({ type: "notice", data: { kind: "retry", message: "overloaded: retry 1 of 10 in 0.5 s" } });
    session.emit({ type: "session.configured", data: { model: "opus" } });
    const answer = await check(engine, { responseMode: "delta_compact" });
    expect(answer).toEqual({
      sessionId: "s1",
      status: "running",
      pollInterval: 3_000,
      events: [
        { id: 3, type: "output", data: { text: "I look around." }, timestamp: new Date(NOW + 3).toISOString() },
        {
          id: 4,
          type: "progress",
          data: { notice: "retry", message: "overloaded: retry 1 of 10 in 0.5 s" },
          timestamp: new Date(NOW + 4).toISOString(),
        },
      ],
      nextCursor: 6,
      lastEventId: 5,
    });
    expect(await check(engine, { cursor: 6 })).toMatchObject({ events: [], nextCursor: 6 });
  });

  it("a poll reads page by page with `maxEvents`", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    for (let index = 0; index < 5; index += 1) session.emitText(`line ${String(index)}`);
    const texts: string[] = [];
    let cursor = 1;
    let more = true;
    while (more) {
      const { events, nextCursor, truncatedFields } = await check(engine, { cursor, maxEvents: 2 });
      texts.push(...events.map(({ data }) => data.text ?? ""));
      more = truncatedFields !== undefined;
      cursor = nextCursor;
    }
    expect(texts).toEqual(["line 0", "line 1", "line 2", "line 3", "line 4"]);
    expect(cursor).toBe(7);
  });

  it("a poll returns the result of the last turn at any cursor, and a short event for the end of the turn", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emitText("The tests pass, all of them.");
    session.finishTurn("The tests pass, all of them.");
    const answer = await check(engine, { responseMode: "delta_compact" });
    expect(answer).toMatchObject({
      status: "idle",
      result: { result: "The tests pass, all of them.", stopReason: "end_turn" },
    });
    expect(answer).not.toHaveProperty("pollInterval");
    expect(answer.events.map(({ type, data }) => [type, data.text ?? data.result])).toEqual([
      ["output", "(see result)"],
      ["result", "(see result)"],
    ]);
    expect(answer.events[1]?.data).toMatchObject({ result: "(see result)", isError: false, numTurns: 2 });
    expect(await check(engine, { cursor: answer.nextCursor })).toMatchObject({
      events: [],
      result: { result: "The tests pass, all of them." },
    });
  });

  it("while a turn runs, a poll has no `result`, but reports the ends of earlier turns in full", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.finishTurn("first");
    session.startTurn();
    const answer = await check(engine);
    expect(answer).not.toHaveProperty("result");
    expect(answer.events).toMatchObject([
      { type: "result", data: { result: "first", numTurns: 2, usage: { costUsd: 0.01, outputTokens: 20 } } },
    ]);
  });

  it.each([
    ["done", "idle", "result", false],
    ["failed", "error", "error", true],
    ["interrupted", "idle", "result", true],
    ["lost", "error", "error", true],
  ] as const)("a turn that is %s gives the status %s and the event %s", async (outcome, status, type, isError) => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.endTurn({ outcome, isError, message: "what is known" });
    const result = { isError, result: "what is known" };
    expect(await check(engine)).toMatchObject({ status, events: [], result });
    const answer = await check(engine, { responseMode: "delta_compact" });
    expect(answer).toMatchObject({ status, events: [{ type }], result });
  });

  it("a poll reports who cancelled a session, when and why", async () => {
    const engine = new FakeEngine();
    engine.add().startTurn();
    await runForAnswer(engine, "_session", { action: "cancel", sessionId: "s1" });
    expect(await check(engine)).not.toHaveProperty("cancelledAt");
    expect(await check(engine, { responseMode: "delta_compact" })).toMatchObject({
      status: "cancelled",
      cancelledAt: new Date(NOW).toISOString(),
      cancelledReason: "cancelled by caller",
      cancelledSource: "caller",
      result: { isError: true, code: "CANCELLED", result: "cancelled by caller" },
    });
  });

  it("a poll resets a cursor before the beginning of a trimmed log, and a cursor beyond the end", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    for (const text of ["a", "b", "c"]) session.emitText(text);
    session.trimmedBefore = 3;
    expect(await check(engine)).toMatchObject({ cursorResetTo: 3, events: [{ id: 3 }, { id: 4 }] });
    expect(await check(engine, { cursor: 99, waitMs: 20 })).toMatchObject({
      cursorResetTo: 5,
      events: [],
      nextCursor: 5,
    });
    expect(await check(engine, { cursor: 0 })).toMatchObject({ cursorResetTo: 3 });
  });

  it("a poll continues after all events of the log were deleted", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emitText("a");
    session.trimmedBefore = 3;
    const answer = await check(engine);
    expect(answer).toMatchObject({ cursorResetTo: 3, events: [], nextCursor: 3 });
    expect(answer).not.toHaveProperty("truncated");
  });

  it("an answer shows the session at one moment: events after it come with the next answer", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emitText("before");
    const read = engine.read.bind(engine);
    let once = true;
    engine.read = (...args) => {
      if (once) session.endTurn();
      once = false;
      return read(...args);
    };
    const first = await check(engine);
    expect(first).toMatchObject({ status: "running", nextCursor: 3, events: [{ data: { text: "before" } }] });
    const next = await check(engine, { cursor: 3, responseMode: "delta_compact" });
    expect(next).toMatchObject({ status: "idle", events: [{ type: "result" }] });
  });
});

describe("waits of claude_code_check", () => {
  it("a poll waits for news by default, for 20 s at most", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    setTimeout(() => session.finishTurn("ok"), 20);
    expect(await runForAnswer(engine, "_check", { action: "poll", sessionId: "s1" })).toMatchObject({ status: "idle" });
    expect(engine.waits).toMatchObject([
      { until: "news", timeoutMs: 20_000, sessions: [{ sessionId: "s1", cursor: 1 }] },
    ]);
  });

  it("a poll with `until` event waits for any event that is shown", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    setTimeout(() => session.emit({ type: "session.configured", data: { model: "opus" } }), 10);
    setTimeout(() => session.emitText("now"), 30);
    const answer = await check(engine, { cursor: 2, until: "event", waitMs: 5_000 });
    expect(answer.events).toMatchObject([{ id: 3, data: { text: "now" } }]);
  });

  it("a poll with `until` end waits for the end of the turn, even while a request is open", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    setTimeout(() => session.finishTurn("ok"), 30);
    expect(await check(engine, { until: "end", waitMs: 5_000 })).toMatchObject({ status: "idle" });
  });

  it("a waiting poll reports new events to a client that listens, and a burst of events once", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    const message = {
      type: "assistant",
      message: { content: [{ type: "tool_use", id: "u1", name: "Bash", input: { command: "npm test" } }] },
    };
    session.emit({ type: "message", data: { message } });
    const lines: string[] = [];
    const call: ToolCall = {
      ...callOf(),
      client: {
        elicitation: false,
        tasks: false,
        progress: (line) => void lines.push(line),
        news: (line) => void lines.push(`log ${line}`),
      },
    };
    const answer = check(engine, { waitMs: 20_000 }, call);
    await expect.poll(() => lines).toEqual(["log Bash: npm test", "Bash: npm test"]);
    // Only the last event of a burst is reported.
    session.emitText("one");
    session.emitText("two");
    await expect.poll(() => lines.slice(2)).toEqual(["log two", "two"]);
    session.finishTurn("Done.");
    await answer;
    expect(lines).toHaveLength(4);
    expect(engine.waits.every(({ signal, until }) => until === "news" || signal.aborted)).toBe(true);
  });

  it("a waiting poll reads nothing for a caller that receives no progress", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    let looks = 0;
    const { get, read } = { get: engine.get.bind(engine), read: engine.read.bind(engine) };
    engine.get = async (...args) => ((looks += 1), get(...args));
    engine.read = async (...args) => ((looks += 1), read(...args));
    const answer = check(engine, { waitMs: 20_000 });
    await expect.poll(() => engine.waits.length).toBe(1);
    const before = looks;
    for (let each = 0; each < 20; each += 1) session.emitText(String(each));
    await new Promise((resolve) => setImmediate(resolve));
    expect([looks - before, engine.waits.length]).toEqual([0, 1]);
    session.finishTurn("Done.");
    await answer;
  });
});

describe("a call repeated with a submitted form", () => {
  it("a call with a submitted form returns once the turn of the request has ended, even if the next turn runs", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    session.state.requests[0]!.approver = "user";
    const tool = tools.get("claude_code_check")!;
    const deps: ToolDeps = { ...depsOf(engine), approvalChain: ["user", "caller"] };
    const call: ToolCall = { ...callOf(), client: { elicitation: "between", tasks: false } };
    const poll = { action: "poll", sessionId: "s1", waitMs: 1_000 };
    const shown = await runToolOrAsk(tool, poll, call, deps);
    if (!("needsInput" in shown)) throw new Error("no form was shown");
    session.endTurn();
    session.startTurn();
    const answered = { perm_r1: { action: "accept" as const, content: { decision: "allow" } } };
    await runToolOrAsk(tool, poll, { ...call, resumeState: shown.needsInput.state, inputResponses: answered }, deps);
    expect(engine.waits.filter(({ until }) => until === "news")).toHaveLength(1);
  });
});
