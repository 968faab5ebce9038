import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { PRODUCT } from "../../src/domain/names.ts";
import type { Answer, Connection } from "../kit/clients/connection.ts";
import { createHostileSettings } from "../kit/attacks/hostile-settings.ts";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();

const main = resolve("dist/cli/main.js");

/** Writes the user's own configuration of Claude Code: MCP servers and trusted directories. */
function configure(state: { mcpServers?: object; projects?: object }): void {
  writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify(state));
}

const ALLOW_RULES = { permissions: { allow: ["Bash(touch made)", "Edit(out/**)"] } };
const untrusted = ({ events }: Answer) => events.filter(({ data }) => data["notice"] === "untrusted_directory");

/** Server with default flags, and with settings and secrets in its environment. */
let closed: Server;
/** Server that allows nested sessions and every mode, and trusts directories. */
let open: Server;
let trusted: string;
let named: ReturnType<typeof createHostileSettings>;
beforeAll(async () => {
  trusted = world.folder();
  named = createHostileSettings(world, ALLOW_RULES);
  const quick = { MCP_TIMEOUT: "1000" };
  const own = { CLAUDE_CODE_MCP_RESUME_SECRET: "s3cret-of-the-server", CLAUDE_CODE_ALLOWED_TOOLS: "Bash" };
  closed = await world.server({ env: { ...quick, ...own, CLAUDECODE: "1", ENABLE_TOOL_SEARCH: "false" } });
  const args = ["--max-depth", "2", "--allow-bypass", "--trust-dir", named.cwd, "--trust-dir", trusted];
  // With `IS_SANDBOX`, Claude Code lets root choose bypassPermissions.
  open = await world.server({ args, env: { ...quick, CLAUDE_CODE_MCP_DEPTH: "1", IS_SANDBOX: "1" } });
});

describe("directories with settings, hooks and MCP servers", () => {
  /** Denies each request. Returns the requests and the result. */
  async function asked(on: Server, cwd: string): Promise<{ requests: unknown[]; end: Answer }> {
    const commands = ["touch made", "touch other"].map((command) => ({ name: "Bash", input: { command } }));
    const write = { name: "Write", input: { file_path: join(cwd, "out", "a"), content: "x" } };
    const calls = [write, ...commands].map((call) => ({ tools: [call] }));
    let end = await runScript(on, [...calls, { text: "hi" }], { cwd });
    const requests: unknown[] = [];
    for (let [action] = end.actions; action; [action] = end.actions) {
      const { input, requestId } = action;
      requests.push(input["command"] ?? input["file_path"]);
      const denial = { action: "respond_permission", sessionId: end.sessionId, requestId, decision: "deny" };
      await on.call("claude_code_check", { ...denial, waitMs: 40_000 });
      end = await readWholeLog(on, end.sessionId);
    }
    return { requests, end };
  }

  // Runs first, because every Claude Code at its end rewrites the record from memory.
  it("a directory is trusted if Claude Code's own record trusts it", async () => {
    const { cwd, ran } = createHostileSettings(world);
    configure({ projects: { [cwd]: { hasTrustDialogAccepted: true } } });
    await runScript(closed, [{ text: "hi" }], { cwd });
    expect(ran()).toContain("project-hook");
  });

  it("an untrusted directory runs no hook and no server of .mcp.json, allows nothing, and is reported as untrusted", async () => {
    const { cwd, ran } = createHostileSettings(world, ALLOW_RULES);
    const { end, requests } = await asked(closed, cwd);
    expect(end.result?.result).toBe("hi");
    expect(ran()).toEqual([]);
    expect(requests).toEqual([join(cwd, "out", "a"), "touch made", "touch other"]);
    expect(untrusted(end)).toHaveLength(1);
    expect(JSON.stringify(untrusted(end))).toContain("--trust-dir");
  });

  it("a directory named by --trust-dir runs its hooks and servers, and its allow rules count", async () => {
    const { cwd, ran } = named;
    const { end, requests } = await asked(open, cwd);
    expect(end.result?.result).toBe("hi");
    expect(ran()).toEqual(["local-hook", "mcp-server", "project-hook"]);
    expect(requests).toEqual(["touch other"]);
    expect([join(cwd, "made"), join(cwd, "out", "a")].filter((file) => !existsSync(file))).toEqual([]);
    expect(untrusted(end)).toEqual([]);
  });
});

describe("a closed gate to bypassPermissions", () => {
  it("a server without --allow-bypass takes no prompt for another server's bypassPermissions session", async () => {
    // Below a folder that the operator trusts.
    const { cwd, ran } = createHostileSettings({ folder: () => mkdtempSync(join(trusted, "below-")) });
    const args = { cwd, permissionMode: "bypassPermissions", waitMs: 40_000 };
    const { result, sessionId } = await open.call("claude_code", { ...args, prompt: scriptTag([{ text: "hi" }]) });
    expect(result?.result).toBe("hi");
    expect(ran()).toContain("project-hook");
    const { code, text } = await closed.refusal("claude_code_reply", { sessionId, prompt: "more" });
    expect(code).toBe("PERMISSION_DENIED");
    expect(text).toContain("--allow-bypass");
    const again = { sessionId, prompt: scriptTag([{ text: "again" }]), waitMs: 40_000 };
    expect((await open.call("claude_code_reply", again)).result?.result).toBe("again");
  });
});

describe("the environment of the agent's shell", () => {
  it("the agent's shell lacks the server's settings and secrets; a plain folder causes no notice of missing trust", async () => {
    const cwd = world.folder();
    const env = { tools: [{ name: "Bash", input: { command: "env > environment.txt; cat environment.txt" } }] };
    const options = { cwd, allowedTools: ["Bash"], advanced: { env: { GIVEN_BY_CALLER: "yes" } } };
    const done = await runScript(closed, [env, { text: "ok" }], options);
    expect(done.result).toMatchObject({ isError: false, result: "ok" });
    const seen = readFileSync(join(cwd, "environment.txt"), "utf8");
    expect(seen).toContain("GIVEN_BY_CALLER=yes");
    expect(seen).toContain("CLAUDE_CODE_MCP_DEPTH=1");
    expect(seen).not.toContain("s3cret");
    expect(seen).not.toContain("CLAUDE_CODE_ALLOWED_TOOLS");
    expect(untrusted(done)).toEqual([]);
  });
});

describe("protection against recursion", () => {
  let outer: Connection;

  it("a session starts our own server neither by name nor by URL, and no process shows the server's flags", async () => {
    const principals = JSON.stringify({ ada: { tokenSha256: "a".repeat(64), allowDirs: "any" } });
    const server = await world.http({ args: ["--principals", principals], env: { ENABLE_TOOL_SEARCH: "false" } });
    outer = await server.connect();
    const headers = { Authorization: `Bearer ${server.token}` };
    const { port } = new URL(server.url);
    const urls = [server.url, `http://localhost:${port}/mcp`];
    const http = urls.map((url, index) => [`agents-${String(index)}`, { type: "http", url, headers }] as const);
    const own = { command: process.execPath, args: [main] };
    configure({ mcpServers: { ...Object.fromEntries(http), [PRODUCT]: own } });
    const prompt = scriptTag([{ gateBefore: "looked", text: "hi" }]);
    const { sessionId } = await outer.call("claude_code", { prompt, cwd: world.folder() });
    const { tools } = await world.model.waitForRequest((request) => request.sessionId === sessionId);
    expect(tools.length).toBeGreaterThan(3);
    expect(tools.filter((name) => name.includes("claude_code"))).toEqual([]);
    expect(world.processes().filter(({ command }) => command.includes("a".repeat(64)))).toEqual([]);
    world.model.release("looked");
    await outer.end(sessionId);
  });

  it("our own server starts under another name, but refuses to start a nested session", async () => {
    const renamed = { command: process.execPath, args: [main, "serve", "--log-level", "silent"] };
    const cwd = world.folder();
    const before = world.daemons();
    // `outer` lacks the short `MCP_TIMEOUT` of the other servers: a server that starts later than the timeout is missing
    // without an error (https://github.com/anthropics/claude-code/issues/76239).
    const inner = { name: "mcp__renamed__claude_code", input: { prompt: "nested", cwd } };
    let done: Answer;
    do {
      // A Claude Code of an earlier test can overwrite the file with its own copy.
      configure({ mcpServers: { renamed } });
      done = await runScript(outer, [{ tools: [inner] }, { text: "refused" }], { cwd, allowedTools: [inner.name] });
    } while (JSON.stringify(done.events).includes("No such tool available"));
    expect(done.result?.result).toBe("refused");
    expect(JSON.stringify(done.events)).toContain("PERMISSION_DENIED");
    expect(JSON.stringify(done.events)).toContain("--max-depth");
    expect(world.daemons()).toEqual(before);
  });

  // Starts another server, because `open` may nest deeper and has run sessions.
  it("a server inside a session refuses to start another session", async () => {
    const refusing = await world.server({ env: { CLAUDE_CODE_MCP_DEPTH: "1" } });
    const refused = await refusing.refusal("claude_code", { prompt: "x", cwd: world.folder() });
    expect(refused.code).toBe("PERMISSION_DENIED");
  });
});
