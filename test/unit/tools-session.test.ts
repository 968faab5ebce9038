import { describe, expect, it } from "vitest";
import { AppError } from "../../src/domain/error.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { runForAnswer, runList, type SessionList, run, runWithSensitiveDetails } from "../kit/tools/run.ts";

const iso = (at: number) => new Date(at).toISOString();

const common = {
  createdAt: iso(NOW),
  lastActiveAt: iso(NOW + 1_000),
  totalTurns: 0,
  totalCostUsd: 0,
  queued: 0,
  lastEventId: 0,
  processLive: false,
  processStarts: 0,
};

const PRIVATE = {
  cwd: "/secret/place",
  systemPrompt: "secret words",
  agents: {
    a: {
      description: "secret agent",
      prompt: "secret prompt",
      mcpServers: ["secret name", { own: { command: "hidden", env: { A: "hidden" } } }],
    },
  },
  additionalDirectories: ["/secret/other"],
  allowedTools: ["Bash(secret *)"],
  env: { TOKEN: "hidden" },
  mcpServers: {
    local: { command: "hidden", args: ["hidden"], env: { A: "hidden" } },
    remote: { type: "http" as const, url: "https://hidden.example", headers: { Authorization: "hidden" } },
  },
  model: "opus",
};

function privateEngine(): FakeEngine {
  const engine = new FakeEngine();
  const session = engine.add("s1", PRIVATE);
  session.title = "secret title";
  session.state.background = [{ id: "b1", type: "shell", description: "secret command" }];
  session.emit({ type: "session.opened", data: { cwd: PRIVATE.cwd } });
  session.emit({ type: "prompt.queued", data: { promptId: "p1", text: "secret task" } });
  session.emit({ type: "prompt.queued", data: { promptId: "p2", text: "not the first" } });
  return engine;
}

/** Events in each page of the log that action diff reads. */
const PAGE = 500;

it.each([1, PAGE, PAGE + 1, 2 * PAGE])(
  "action diff finds an edit that is event %i, the last of the log",
  async (at) => {
    const engine = new FakeEngine();
    const session = engine.add("s1");
    while (session.state.lastEventId < at - 1)
      session.emit({ type: "notice", data: { kind: "warning", message: "x" } });
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-old", "+new"] }];
    const message = { content: [{ type: "tool_result", tool_use_id: "t1", content: "edited" }] };
    const edit = { type: "user", message, tool_use_result: { filePath: "/a", structuredPatch } };
    session.emit({ type: "message", data: { message: edit } });
    const { structured } = await run(engine, "_session", { action: "diff", sessionId: "s1" });
    expect(structured).toMatchObject({ files: [{ path: "/a", edits: 1 }] });
  },
);

describe("claude_code_session, the public tier", () => {
  it("the public tier shows the state of sessions, and nothing of their content", async () => {
    const engine = privateEngine();
    const session = engine.add("s2");
    session.startTurn();
    session.openRequest();
    session.state.reported = { model: "claude-opus-4-1", permissionMode: "plan" };
    session.state.queue = [{ promptId: "p", eventId: 1, held: true }];
    const list = await run(engine, "_session", { action: "list" });
    const shown = { createdAt: "2026-01-01T00:00:00Z", lastActiveAt: "2026-01-01T00:00:01Z" };
    const counts = { totalTurns: 0, totalCostUsd: 0 };
    expect(list.structured).toEqual({
      sessions: [
        {
          sessionId: "s2",
          status: "waiting_permission",
          ...shown,
          ...counts,
          model: "claude-opus-4-1",
          permissionMode: "plan",
          requested: { permissionMode: "default" },
          queued: 1,
          held: 1,
        },
        { sessionId: "s1", status: "idle", ...shown, model: "opus", permissionMode: "default", ...counts },
      ],
    });
    const of = async (sessionId: string) => run(engine, "_session", { action: "get", sessionId });
    const [waiting, idle] = [await of("s2"), await of("s1")];
    expect(list.text + waiting.text + idle.text).not.toMatch(/secret|hidden/);
    expect([waiting.structured, idle.structured].flatMap((each) => (each as unknown as SessionList).sessions)).toEqual([
      {
        sessionId: "s2",
        status: "waiting_permission",
        turnStartedAt: iso(NOW),
        model: "claude-opus-4-1",
        permissionMode: "plan",
        requested: { permissionMode: "default" },
        reported: { model: "claude-opus-4-1", permissionMode: "plan" },
        pending: 1,
        requests: [
          {
            requestId: "r1",
            type: "permission",
            toolName: "Bash",
            createdAt: iso(NOW),
            expiresAt: iso(NOW + 1_800_000),
          },
        ],
        ...common,
        queued: 1,
        held: 1,
        lastEventId: 2,
      },
      {
        sessionId: "s1",
        status: "idle",
        model: "opus",
        permissionMode: "default",
        requested: { model: "opus", permissionMode: "default" },
        reported: {},
        pending: 0,
        background: [{ id: "b1", type: "shell" }],
        ...common,
        lastEventId: 3,
      },
    ]);
  });

  it("the public tier shows by whom and when a session was closed", async () => {
    const engine = new FakeEngine();
    engine.add().startTurn();
    const args = { action: "cancel", sessionId: "s1" };
    const first = await runForAnswer(engine, "_session", args);
    expect(first).toMatchObject({
      sessions: [
        {
          status: "cancelled",
          lastOutcome: "cancelled",
          closed: { reason: "cancelled", by: "caller", at: iso(NOW) },
        },
      ],
      message: "Session s1 is cancelled and takes no more prompts.",
    });
    const again = await runForAnswer(engine, "_session", args);
    expect(again.message).toBe("Session s1 was already cancelled.");
  });

  it("a session that does not exist is refused", async () => {
    const reply = await run(new FakeEngine(), "_session", { action: "get", sessionId: "x" });
    expect(reply).toMatchObject({ isError: true, structured: { code: "SESSION_NOT_FOUND", sessionId: "x" } });
  });
});

describe("claude_code_session, the sensitive tier", () => {
  it.each(["list", "get"])(
    "the sensitive tier of %s shows the content of a session, and lists the fields that no tier shows",
    async (action) => {
      const args = { action, includeSensitive: true, ...(action === "get" && { sessionId: "s1" }) };
      const reply = await runWithSensitiveDetails(privateEngine(), args);
      expect(reply.text).not.toContain("hidden");
      const [session] = (reply.structured as unknown as SessionList).sessions;
      const { agents, env: _, mcpServers: __, model: ___, ...shown } = PRIVATE;
      expect(session).toMatchObject({
        sessionId: "s1",
        status: "idle",
        title: "secret title",
        prompt: "secret task",
        ...shown,
        agents: { a: { ...agents.a, mcpServers: ["secret name", { own: { type: "stdio" } }] } },
        background: [{ id: "b1", type: "shell", description: "secret command" }],
        mcpServers: { local: { type: "stdio" }, remote: { type: "http" } },
        leftOut: [
          "env",
          "mcpServers.*.command",
          "mcpServers.*.args",
          "mcpServers.*.env",
          "mcpServers.*.url",
          "mcpServers.*.headers",
          "agents.*.mcpServers.*.command",
          "agents.*.mcpServers.*.env",
        ],
      });
      expect(session).not.toHaveProperty("env");
    },
  );

  it("the sensitive tier is masked like all secrets", async () => {
    const mask = (fields: object) =>
      JSON.parse(JSON.stringify(fields).replaceAll("secret words", "[masked]")) as object;
    const args = { action: "get", sessionId: "s1", includeSensitive: true };
    const { structured } = await runWithSensitiveDetails(privateEngine(), args, {
      mask: (fields) => ({ ...mask(fields) }),
    });
    expect(structured).toMatchObject({ sessions: [{ systemPrompt: "[masked]" }] });
  });

  it("the sensitive tier is cut to the 32,768 bytes of an answer, with `truncated`", async () => {
    const engine = new FakeEngine();
    engine.add("s1", { cwd: "/a", systemPrompt: "s".repeat(200_000) });
    const reply = await runWithSensitiveDetails(engine, { action: "get", sessionId: "s1", includeSensitive: true });
    expect(Buffer.byteLength(reply.text)).toBeLessThanOrEqual(32_768);
    expect(reply.structured).toMatchObject({ sessions: [{ cwd: "/a", truncated: true }] });
  });

  it.each([
    [{ action: "list", cwd: "/a" }, "cwd"],
    [{ action: "list", text: "login" }, "text"],
    [{ action: "list", includeSensitive: true }, "includeSensitive"],
    [{ action: "get", sessionId: "s1", includeSensitive: true }, "includeSensitive"],
    [{ action: "get", sessionId: "nobody", includeSensitive: true }, "includeSensitive"],
  ])(
    "the sensitive tier is refused with the variable's name if the operator does not allow it: %j",
    async (args, field) => {
      const engine = privateEngine();
      const { structured, text } = await run(engine, "_session", args);
      expect(structured).toMatchObject({ isError: true, code: "PERMISSION_DENIED" });
      expect(text).toContain(`(${field})`);
      expect(text).toContain("CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS=1");
      expect(engine.queries).toEqual([]);
    },
  );

  it("`includeSensitive: false` does not request the sensitive tier", async () => {
    const { sessions } = await runList(privateEngine(), { includeSensitive: false });
    expect(sessions[0]).not.toHaveProperty("cwd");
  });
});

it("an interrupt that the session refuses is reported as refused", async () => {
  const engine = new FakeEngine();
  engine.add("s1").startTurn();
  engine.interrupt = async () => Promise.reject(new AppError("SESSION_BUSY", "The session moves to another server."));
  const reply = await run(engine, "_session", { action: "interrupt", sessionId: "s1" });
  expect(reply).toMatchObject({ isError: true, text: expect.stringContaining("SESSION_BUSY") });
});
