import { describe, expect, it } from "vitest";
import { callOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { runForAnswer, check, run } from "../kit/tools/run.ts";

const respond = (engine: FakeEngine, args: object) =>
  runForAnswer(engine, "_check", {
    action: "respond_permission",
    sessionId: "s1",
    requestId: "r1",
    decision: "allow",
    waitMs: 0,
    ...args,
  });

describe("claude_code_check, requests", () => {
  it("a poll lists open requests, and their time runs from the delivery", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest({
      suggestions: [{ type: "addRules" }],
      decisionReason: "not allowed",
      blockedPath: "/etc",
      agentId: "a1",
    });
    const minimal = await check(engine);
    expect(minimal).toEqual({
      status: "waiting_permission",
      events: [],
      nextCursor: 3,
      actions: [
        {
          type: "permission",
          requestId: "r1",
          toolName: "Bash",
          input: { command: "npm test" },
          decisionReason: "not allowed",
          blockedPath: "/etc",
          agentID: "a1",
          remainingMs: 60_000,
        },
      ],
    });
    const answer = await check(engine, { responseMode: "delta_compact" });
    expect(answer).toMatchObject({ status: "waiting_permission", pollInterval: 1_000 });
    expect(answer.actions).toEqual([
      {
        type: "permission",
        requestId: "r1",
        toolName: "Bash",
        input: { command: "npm test" },
        summary: "Bash: npm test",
        decisionReason: "not allowed",
        blockedPath: "/etc",
        toolUseID: "u1",
        agentID: "a1",
        suggestions: [{ type: "addRules" }],
        createdAt: new Date(NOW).toISOString(),
        expiresAt: new Date(NOW + 60_000).toISOString(),
        remainingMs: 60_000,
      },
    ]);
    expect(answer.events).toMatchObject([{ type: "permission_request", data: { requestId: "r1" } }]);
    expect(engine.delivers).toEqual([[{ requestId: "r1", whole: true }]]);
    await check(engine);
    expect(engine.delivers).toHaveLength(1);
  });

  it("a poll reports to the engine that an input was shown cut, and later in full", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest({ toolName: "Write", input: { file_path: "/a", content: "c".repeat(5_000) } });
    expect(await check(engine, { maxBytes: 2_048 })).toMatchObject({
      truncatedFields: ["actions[].input"],
      actions: [{ inputTruncated: true, inputEventId: 2, input: { file_path: "/a" } }],
    });
    expect(await check(engine)).toMatchObject({ actions: [{ input: { content: "c".repeat(5_000) } }] });
    expect(engine.delivers).toEqual([[{ requestId: "r1", whole: false }], [{ requestId: "r1", whole: true }]]);
  });

  it("a poll records no delivery to a caller that is gone", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    await check(engine, {}, callOf(AbortSignal.abort()));
    expect(engine.delivers).toEqual([]);
  });

  it("an answer is passed on, and the call waits for its outcome", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emitText("before");
    session.openRequest();
    session.emitText("meanwhile");
    engine.onAnswer = () => void setTimeout(() => session.finishTurn("done"), 20);
    const answer = await respond(engine, { waitMs: 5_000 });
    expect(engine.answers).toEqual([{ requestId: "r1", decision: "allow", by: "caller" }]);
    expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
    // The caller's own decision, and the content of the result, are in no event.
    expect(answer.events.map(({ data }) => data)).toEqual([{ text: "meanwhile" }]);
    const whole = await check(engine, { responseMode: "delta_compact" });
    expect(whole.events.map(({ type }) => type).slice(2)).toEqual(["output", "permission_result", "result"]);
  });

  it("an answer does not wait while another request is open", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    session.openRequest({ requestId: "r2" });
    const answer = await respond(engine, { cursor: 4, waitMs: 30_000 });
    expect(answer.actions).toMatchObject([{ requestId: "r2" }]);
  });

  it.each([
    [
      { decision: "deny", denyMessage: "use pnpm", interrupt: true },
      { decision: "deny", denyMessage: "use pnpm", interrupt: true },
    ],
    [{ decision: "allow_for_session" }, { decision: "allow_for_session" }],
    [{ interrupt: false }, { decision: "allow" }],
    [
      {
        permissionOptions: {
          updatedInput: { command: "ls" },
          updatedPermissions: [{ type: "setMode", mode: "acceptEdits" }],
        },
      },
      {
        decision: "allow",
        updatedInput: { command: "ls" },
        updatedPermissions: [{ type: "setMode", mode: "acceptEdits", destination: "session" }],
      },
    ],
  ])("the answer %j is passed on", async (args, expected) => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    await respond(engine, args);
    expect(engine.answers).toEqual([{ requestId: "r1", by: "caller", ...expected }]);
  });

  it("an answer to a request that is not open is refused", async () => {
    const engine = new FakeEngine();
    engine.add().startTurn();
    const reply = await run(engine, "_check", {
      action: "respond_permission",
      sessionId: "s1",
      requestId: "r9",
      decision: "deny",
    });
    expect(reply.structured).toMatchObject({ code: "PERMISSION_REQUEST_NOT_FOUND", sessionId: "s1" });
  });
});
