import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
let cwd: string;
beforeAll(async () => {
  server = await world.server();
  cwd = world.folder();
});

const UNKNOWN = "00000000-0000-4000-8000-000000000000";

describe("INVALID_ARGUMENT for a bad argument", () => {
  const start = (args: object) => ["claude_code", { prompt: "x", ...args }] as const;
  const check = (args: object) => ["claude_code_check", { action: "poll", sessionId: UNKNOWN, ...args }] as const;
  const cases: [string, string, object][] = [
    ["prompt", ...start({ prompt: "" })],
    ["prompt", ...start({ prompt: "   \n " })],
    ["prompt", "claude_code", {}],
    ["prompt", ...start({ prompt: 5 })],
    ["prompt", ...start({ prompt: null })],
    ["cwd", ...start({ cwd: "/does/not/exist" })],
    ["cwd", ...start({ cwd: ["/tmp"] })],
    ["maxTurns", ...start({ maxTurns: 0 })],
    ["maxTurns", ...start({ maxTurns: -1 })],
    ["maxTurns", ...start({ maxTurns: 1.5 })],
    ["maxTurns", ...start({ maxTurns: "three" })],
    ["waitMs", ...start({ waitMs: -1 })],
    ["waitMs", ...start({ waitMs: 45_001 })],
    ["permissionMode", ...start({ permissionMode: "yolo" })],
    ["permissionMode", ...start({ permissionMode: "delegate" })],
    ["permissionRequestTimeoutMs", ...start({ permissionRequestTimeoutMs: -5 })],
    ["allowedTools", ...start({ allowedTools: "Bash" })],
    ["allowedTools", ...start({ allowedTools: [1] })],
    ["systemPrompt", ...start({ systemPrompt: { type: "preset", preset: "other" } })],
    ["promt", ...start({ promt: "x" })],
    ["advanced.thinkng", ...start({ advanced: { thinkng: { type: "adaptive" } } })],
    ["advanced.thinking", ...start({ advanced: { thinking: { type: "often" } } })],
    [
      "advanced.agents.a.colour",
      ...start({ advanced: { agents: { a: { description: "d", prompt: "p", colour: "red" } } } }),
    ],
    ["advanced.effort", ...start({ advanced: { effort: "huge" } })],
    ["advanced.additionalDirectories", ...start({ advanced: { additionalDirectories: "/tmp" } })],
    ["additionalDirectories[0]", ...start({ advanced: { additionalDirectories: ["/does/not/exist"] } })],
    ["pathToClaudeCodeExecutable", ...start({ advanced: { pathToClaudeCodeExecutable: resolve("package.json") } })],
    ["advanced", ...start({ advanced: [] })],
    ["sessionId", "claude_code_reply", { prompt: "x" }],
    ["prompt", "claude_code_reply", { sessionId: UNKNOWN, prompt: "" }],
    ["forkSesion", "claude_code_reply", { sessionId: UNKNOWN, prompt: "x", forkSesion: true }],
    ["action", "claude_code_session", { action: "destroy" }],
    ["action", "claude_code_session", {}],
    ["sessionId", "claude_code_session", { action: "get" }],
    ["action", ...check({ action: "pol" })],
    ["cursor", ...check({ cursor: -1 })],
    ["cursor", ...check({ cursor: "last" })],
    ["until", ...check({ until: "never" })],
    ["maxEvents", ...check({ maxEvents: 0 })],
    ["maxBytes", ...check({ maxBytes: 10 })],
    ["requestId", ...check({ action: "respond_permission", decision: "allow" })],
    ["decision", ...check({ action: "respond_permission", requestId: "r" })],
    ["decision", ...check({ action: "respond_permission", requestId: "r", decision: "maybe" })],
    ["interrupt", ...check({ action: "respond_permission", requestId: "r", decision: "allow", interrupt: true })],
    [
      "permissionOptions",
      ...check({
        action: "respond_permission",
        requestId: "r",
        decision: "deny",
        permissionOptions: { updatedInput: {} },
      }),
    ],
    [
      "permissionOptions.updatedPermissions",
      ...check({
        action: "respond_permission",
        requestId: "r",
        decision: "allow",
        permissionOptions: { updatedPermissions: [{ type: "grantAll" }] },
      }),
    ],
  ];

  it.each(cases)("INVALID_ARGUMENT names the field %s of %s %j", async (field, tool, args) => {
    const { code, text } = await server.refusal(tool, { ...args });
    expect(code).toBe("INVALID_ARGUMENT");
    expect(text.startsWith("Error [INVALID_ARGUMENT]: ")).toBe(true);
    expect(text).toContain(field);
  });

  it("a cwd that is a file is INVALID_ARGUMENT", async () => {
    const file = join(cwd, "file.txt");
    writeFileSync(file, "");
    expect(await server.refusal("claude_code", { prompt: "x", cwd: file })).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringMatching(/cwd.*is a file/) as string,
    });
  });

  it("null or an empty text for an optional argument counts as omitted", async () => {
    const args = { action: "list", status: null, cwd: "", text: "", limit: null, includeSensitive: null };
    expect(await server.call("claude_code_session", args)).toMatchObject({ sessions: [] });
  });

  it("an argument that is not a text may be sent as JSON text", async () => {
    const advanced = { mcpServers: { x: { type: "streamable-http", url: "http://127.0.0.1:1/" } }, effort: "low" };
    const lists = { allowedTools: '["Bash"]', advanced: JSON.stringify(advanced) };
    const prompt = scriptTag([{ text: "heard" }]);
    const started = await server.call("claude_code", { prompt, cwd, ...lists, maxTurns: "3", waitMs: "40000" });
    expect(started).toMatchObject({ status: "idle", result: { result: "heard" } });
    const { sessionId } = started;
    const list = await server.call("claude_code_session", { action: "list", limit: "200", includeSensitive: "false" });
    expect(list.sessions.map((each) => each.sessionId)).toContain(sessionId);
    expect(await server.refusal("claude_code", { prompt: "x", cwd, waitMs: "soon" })).toMatchObject({
      text: expect.stringContaining('waitMs: must be a number, not "soon".') as string,
    });
  });

  it("the error for a misspelt key suggests the probable key", async () => {
    const { text } = await server.refusal("claude_code", { prompt: "x", advanced: { thinkng: {} } });
    expect(text).toContain("thinking");
  });
});

describe("an unknown session", () => {
  it.each([
    ["claude_code_reply", { sessionId: UNKNOWN, prompt: "x" }],
    ["claude_code_session", { action: "get", sessionId: UNKNOWN }],
    ["claude_code_session", { action: "cancel", sessionId: UNKNOWN }],
    ["claude_code_check", { action: "poll", sessionId: UNKNOWN }],
    ["claude_code_check", { action: "respond_permission", sessionId: UNKNOWN, requestId: "r", decision: "allow" }],
  ])("%s %j for an unknown session is SESSION_NOT_FOUND", async (tool, args) => {
    const { code, text } = await server.refusal(tool, args);
    expect(code).toBe("SESSION_NOT_FOUND");
    expect(text).toContain(UNKNOWN);
  });
});

describe("policies of the operator", () => {
  it("bypassPermissions is PERMISSION_DENIED by every route while the gate is closed", async () => {
    const agents = { a: { description: "d", prompt: "p", permissionMode: "bypassPermissions" } };
    for (const args of [{ permissionMode: "bypassPermissions" }, { advanced: { agents } }]) {
      const { code, text } = await server.refusal("claude_code", { prompt: "x", cwd, ...args });
      expect(code).toBe("PERMISSION_DENIED");
      expect(text).toContain("--allow-bypass");
    }
    const script = [{ tools: [{ name: "Bash", input: { command: "touch x" } }] }, { text: "ok" }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    const asked = await server.news(sessionId);
    const updatedPermissions = [{ type: "setMode", mode: "bypassPermissions", destination: "session" }];
    const answer = {
      action: "respond_permission",
      sessionId,
      requestId: asked.actions[0]?.requestId,
      decision: "allow",
    };
    const refused = await server.refusal("claude_code_check", { ...answer, permissionOptions: { updatedPermissions } });
    expect(refused.code).toBe("PERMISSION_DENIED");
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("--allow-dir confines cwd and additionalDirectories by real path", async () => {
    const { symlinkSync } = await import("node:fs");
    const confined = await world.server({ args: ["--allow-dir", cwd] });
    symlinkSync("/etc", join(cwd, "way-out"));
    for (const args of [
      { cwd: "/etc" },
      { cwd: join(cwd, "way-out") },
      { cwd, advanced: { additionalDirectories: ["/etc"] } },
    ]) {
      const { code, text } = await confined.refusal("claude_code", { prompt: "x", ...args });
      expect(code).toBe("INVALID_ARGUMENT");
      expect(text).toContain("--allow-dir");
    }
  });
});

describe("prompts of every kind", () => {
  async function echo(prompt: string): Promise<string> {
    const { sessionId, result } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    expect(result).toMatchObject({ result: "heard", isError: false });
    const request = world.model.requests.findLast((seen) => seen.sessionId === sessionId);
    return request?.lastUserText ?? "";
  }
  const heard = scriptTag([{ text: "heard" }]);

  it.each([
    ["emoji and other scripts", "👩‍👩‍👧‍👦 ñ 漢字 עברית \u{1F3F4}\u{E0067}"],
    ["controls", "tab\tbell\u0007escape\u001b[31mred\u001b[0m delete\u007f"],
    ["line ends", "a\r\nb\rc\u2028d\u2029e"],
    ["quotes and angle brackets", `"'\`<>&{}[]\\ \${x} %s`],
    ["bidirectional marks", "\u202Eabc\u202C \u200B \uFEFF"],
  ])("%s in a prompt reach the model unchanged", async (_, odd) => {
    expect(await echo(`${odd} ${heard}`)).toContain(odd);
  });

  it("a prompt of 1 MB reaches the model whole", async () => {
    const long = "0123456789abcdef".repeat(65_536);
    expect(await echo(`${long} ${heard}`)).toContain(long);
  });

  it.each([
    ["NUL", "a\u0000b"],
    ["a lone surrogate", "a\uD800b"],
  ])("a prompt with %s comes through or is INVALID_ARGUMENT", async (_, odd) => {
    const args = { prompt: `${odd} ${heard}`, cwd, waitMs: 40_000 };
    const heardOrRefused = await server.call("claude_code", args).then(
      ({ result }) => result?.result ?? "",
      (error: unknown) => String(error),
    );
    expect(heardOrRefused).toMatch(/^heard$|INVALID_ARGUMENT\]: prompt/);
  });
});
