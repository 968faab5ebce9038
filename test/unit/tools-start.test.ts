import { describe, expect, it } from "vitest";
import type { ToolCall } from "../../src/tools/define.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { emitCall, emitOutcome } from "../kit/tools/log.ts";
import { runForAnswer, check, run, tools, runTool } from "../kit/tools/run.ts";

describe("claude_code", () => {
  it("a start returns at once with the id and the cursor", async () => {
    const engine = new FakeEngine();
    const answer = await runForAnswer(engine, "", { prompt: "Fix it" });
    expect(answer).toEqual({ sessionId: "s1", status: "running", nextCursor: 1, pollInterval: 3_000 });
    expect(engine.opened).toEqual([
      { prompt: { text: "Fix it", via: "claude_code", limits: { noDialog: true } }, options: { cwd: "/default" } },
    ]);
    expect(engine.waits).toEqual([]);
  });

  it("a start passes on its options, flat, nested or both", async () => {
    const engine = new FakeEngine();
    const flat = { cwd: "/a", model: "opus", maxTurns: 3, effort: "low", tools: ["Read"], permissionMode: "plan" };
    const advanced = { env: { A: "1" }, tools: ["Read"], agents: { b: { description: "d", prompt: "p" } } };
    await runForAnswer(engine, "", { prompt: "x", ...flat, advanced, idempotencyKey: "k" });
    const options = { ...flat, env: advanced.env, agents: advanced.agents };
    expect(engine.opened).toEqual([
      { prompt: { text: "x", via: "claude_code", limits: { noDialog: true }, idempotencyKey: "k" }, options },
    ]);
  });

  it("a start returns the result of a turn that ends within the wait", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = (session) => void setTimeout(() => session.finishTurn("42"), 20);
    const answer = await runForAnswer(engine, "", { prompt: "What is 6 x 7?", waitMs: 5_000 });
    expect(answer).toEqual({
      sessionId: "s1",
      status: "idle",
      nextCursor: 5,
      result: {
        result: "42",
        isError: false,
        durationMs: 1_200,
        numTurns: 2,
        sessionTotalTurns: 4,
        usage: { costUsd: 0.01, inputTokens: 0, outputTokens: 20 },
      },
    });
  });

  it("a start returns early when a request opens, with the text before the request, and nothing is reported twice", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = (session) => {
      setTimeout(() => {
        session.emit({ type: "notice", data: { kind: "warning", message: "bad did not start." } });
        session.emitText("I test it.");
        emitCall(session, "u1");
        session.openRequest();
      }, 20);
    };
    engine.onAnswer = (session) => void emitOutcome(session, ["u1"]);
    const answer = await runForAnswer(engine, "", { prompt: "x", waitMs: 5_000 });
    const { actions, ...rest } = answer;
    expect(rest).toEqual({
      sessionId: "s1",
      status: "waiting_permission",
      pollInterval: 1_000,
      warnings: ["bad did not start."],
      events: [{ id: 4, type: "output", data: { text: "I test it." } }],
      nextCursor: 6,
    });
    expect(actions).toMatchObject([{ requestId: "r1", toolName: "Bash", input: { command: "npm test" } }]);
    expect(engine.delivers).toEqual([[expect.objectContaining({ requestId: "r1", whole: true })]]);
    // A poll in place of an answer returns at once, and an answer does not report the text again.
    const { waits } = engine;
    expect(await check(engine, { cursor: answer.nextCursor, waitMs: 40_000 })).toMatchObject({ actions });
    expect(waits.at(-1)?.sessions).toEqual([{ sessionId: "s1", cursor: 6 }]);
    const respond = { action: "respond_permission", requestId: "r1", decision: "allow", cursor: answer.nextCursor };
    const { events } = await check(engine, respond);
    expect(events.map(({ data }) => data)).toEqual([{ tool: "Bash", ok: true, output: "out of u1" }]);
  });

  it.each<[string, object, Partial<ToolCall>]>([
    ["does not wait", { waitMs: 0 }, {}],
    ["may not read", { waitMs: 5_000 }, { scopes: ["run"] }],
  ])("a start leaves the request to a poll if the caller %s", async (_, args, own) => {
    const engine = new FakeEngine();
    engine.onPrompt = (session) => void session.openRequest();
    const answer = await runForAnswer(engine, "", { prompt: "x", ...args }, { ...callOf(), ...own });
    expect(answer).toEqual({ sessionId: "s1", status: "waiting_permission", nextCursor: 1, pollInterval: 1_000 });
    expect(engine.delivers).toEqual([]);
  });

  it("a start with a larger request returns at most 32,768 bytes", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = (session) => void session.openRequest({ input: { command: "x".repeat(100_000) } });
    const reply = await run(engine, "", { prompt: "x", waitMs: 1_000 });
    expect(reply.structured).toMatchObject({
      truncatedFields: ["actions[].input"],
      actions: [{ inputTruncated: true }],
    });
    expect(Buffer.byteLength(reply.text)).toBeLessThanOrEqual(32_768);
  });

  it("a start cuts a result that is larger than the 32,768 bytes of an answer", async () => {
    const engine = new FakeEngine();
    engine.onPrompt = (session) => session.finishTurn("r".repeat(100_000));
    const reply = await run(engine, "", { prompt: "x", waitMs: 1_000 });
    expect(reply.structured).toMatchObject({ truncated: true, truncatedFields: ["result"], resultEventId: 4 });
    expect(Buffer.byteLength(reply.text)).toBeLessThanOrEqual(32_768);
  });

  it("a caller that no longer waits ends the wait, not the turn", async () => {
    const engine = new FakeEngine();
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    const answer = await runForAnswer(engine, "", { prompt: "x", waitMs: 30_000 }, callOf(controller.signal));
    expect(answer).toMatchObject({ status: "running" });
  });
});

describe("claude_code_reply", () => {
  it("a reply sends the next prompt and reports only the turn of the prompt", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.finishTurn("first");
    const early = await runForAnswer(engine, "_reply", { sessionId: "s1", prompt: "more" });
    expect(early).toEqual({ sessionId: "s1", status: "running", nextCursor: 4, pollInterval: 3_000 });
    session.finishTurn("second");
    engine.onPrompt = (again) => again.finishTurn("third");
    const late = await runForAnswer(engine, "_reply", { sessionId: "s1", prompt: "and now", waitMs: 1_000 });
    expect(late).toMatchObject({ status: "idle", nextCursor: 12, result: { result: "third" } });
  });

  it.each([
    ["SESSION_NOT_FOUND", { sessionId: "nobody" }],
    ["SESSION_BUSY", { sessionId: "s1" }],
    ["CANCELLED", { sessionId: "s2" }],
  ])("a reply is refused with %s", async (code, args) => {
    const engine = new FakeEngine();
    engine.add().startTurn();
    engine.add("s2");
    await engine.cancel("local", "s2", { by: "caller" });
    const reply = await run(engine, "_reply", { prompt: "x", ...args });
    expect(reply.text).toMatch(new RegExp(`^Error \\[${code}\\]: .+`));
    expect(reply.structured).toEqual({ isError: true, error: reply.text, code, sessionId: args.sessionId });
  });
});

describe("an internal error", () => {
  it("an internal error is reported by an id, and its message goes only to the log", async () => {
    const engine = new FakeEngine();
    engine.get = () => Promise.reject(new Error("password=hunter2"));
    const deps = depsOf(engine);
    const reply = await runTool(tools.get("claude_code_session")!, { action: "get", sessionId: "s1" }, callOf(), deps);
    expect(reply.text).toMatch(/^Error \[INTERNAL\]: The server failed \(fault [0-9a-f]{8}\)\. Try again; /);
    expect(JSON.stringify(reply)).not.toContain("hunter2");
    const fault = /fault (\w+)/.exec(reply.text)?.[1];
    expect(deps.faults).toEqual([{ fault, tool: "claude_code_session", error: new Error("password=hunter2") }]);
  });
});
