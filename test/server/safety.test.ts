import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { beforeAll, beforeEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { FORMER_PRODUCT, PRODUCT } from "../../src/domain/names.ts";
import { hostile } from "../support/hostile-settings.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();

const main = resolve("dist/cli/main.js");

/** What the user has told Claude Code: MCP servers of their own, and directories they trust. */
function configure(state: { mcpServers?: object; projects?: object }): void {
  writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify(state));
}
beforeEach(() => rmSync(join(world.configFolder, ".claude.json"), { force: true }));

async function run(server: Server, cwd: string, script: object[] = [{ text: "hi" }]) {
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd, waitMs: 40_000 });
  return server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
}

describe("no recursion by accident", () => {
  it("our own server, installed for the user under its name or its former one, is not started inside a session", async () => {
    const own = { command: process.execPath, args: [main] };
    configure({ mcpServers: { [PRODUCT]: own, [FORMER_PRODUCT]: own } });
    const server = await world.server({ env: { ENABLE_TOOL_SEARCH: "false" } });
    const cwd = world.folder();
    await run(server, cwd);
    const tools = world.model.requests.at(-1)?.tools ?? [];
    expect(tools.length).toBeGreaterThan(3);
    expect(tools.filter((name) => name.includes("claude_code"))).toEqual([]);
  });

  it("nor is one over HTTP, under whatever name; and its flags are in no process of a session", async () => {
    const principals = JSON.stringify({ ada: { tokenSha256: "a".repeat(64), allowDirs: "any" } });
    const server = await world.http({ args: ["--principals", principals], env: { ENABLE_TOOL_SEARCH: "false" } });
    const headers = { Authorization: `Bearer ${server.token}` };
    const { port } = new URL(server.url);
    const urls = [server.url, `http://localhost:${port}/mcp`];
    const named = urls.map((url, index) => [`agents-${String(index)}`, { type: "http", url, headers }]);
    configure({ mcpServers: Object.fromEntries(named) as Record<string, object> });
    const client = await server.connect();
    const prompt = scriptTag([{ gateBefore: "looked", text: "hi" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
    const { tools } = await world.model.waitForRequest((request) => request.sessionId === sessionId);
    expect(tools.length).toBeGreaterThan(3);
    expect(tools.filter((name) => name.includes("claude_code"))).toEqual([]);
    expect(world.processes().filter(({ command }) => command.includes("a".repeat(64)))).toEqual([]);
    world.model.release("looked");
    await client.end(sessionId);
  });

  it("under another name it starts, and refuses to start a session one deeper", async () => {
    configure({
      mcpServers: { renamed: { command: process.execPath, args: [main, "serve", "--log-level", "silent"] } },
    });
    const server = await world.server({ env: { ENABLE_TOOL_SEARCH: "false" } });
    const cwd = world.folder();
    const inner = { name: "mcp__renamed__claude_code", input: { prompt: "nested", cwd } };
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ tools: [inner] }, { text: "refused" }]),
      cwd,
      allowedTools: ["mcp__renamed__claude_code"],
    });
    const done = await server.end(sessionId);
    expect(done.result?.result).toBe("refused");
    expect(JSON.stringify(done.events)).toContain("PERMISSION_DENIED");
    expect(JSON.stringify(done.events)).toContain("--max-depth");
  });

  it("a server that finds itself inside a session refuses, and one that is allowed deeper does not", async () => {
    const refusing = await world.server({ env: { CLAUDE_CODE_MCP_DEPTH: "1" } });
    const refused = await refusing.refusal("claude_code", { prompt: "x", cwd: world.folder() });
    expect(refused.code).toBe("PERMISSION_DENIED");
    const allowing = await world.server({ env: { CLAUDE_CODE_MCP_DEPTH: "1" }, args: ["--max-depth", "2"] });
    expect((await run(allowing, world.folder())).result?.result).toBe("hi");
  });
});

describe("a directory that nobody trusts", () => {
  const quick = { env: { MCP_TIMEOUT: "1000" } };
  let server: Server;
  beforeAll(async () => {
    server = await world.server(quick);
  });

  it("runs no hook and no server of .mcp.json, says so, and still reads CLAUDE.md", async () => {
    const { cwd, ran } = hostile(world);
    const answer = await run(server, cwd);
    expect(answer.result?.result).toBe("hi");
    expect(ran()).toEqual([]);
    const notices = answer.events.filter(({ data }) => data["notice"] === "untrusted_directory");
    expect(notices).toHaveLength(1);
    expect(JSON.stringify(notices)).toContain("--trust-dir");
  });

  it("is no matter for a plain folder: no notice", async () => {
    const answer = await run(server, world.folder());
    expect(answer.events.filter(({ data }) => data["notice"] === "untrusted_directory")).toEqual([]);
  });

  it("runs them when the operator names it", async () => {
    const { cwd, ran } = hostile(world);
    const trusting = await world.server({ ...quick, args: ["--trust-dir", cwd] });
    const answer = await run(trusting, cwd);
    expect(answer.events.filter(({ data }) => data["notice"] === "untrusted_directory")).toEqual([]);
    expect(ran()).toEqual(["local-hook", "mcp-server", "project-hook"]);
  });

  it("has allow rules of its own, which count when the operator names it", async () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude"));
    const permissions = { allow: ["Bash(touch made)", "Edit(out/**)"] };
    writeFileSync(join(cwd, ".claude", "settings.json"), JSON.stringify({ permissions }));
    const commands = ["touch made", "touch other"].map((command) => ({
      tools: [{ name: "Bash", input: { command } }],
    }));
    const write = { tools: [{ name: "Write", input: { file_path: join(cwd, "out", "a"), content: "x" } }] };
    const prompt = scriptTag([write, ...commands, { text: "end" }]);
    const asked = async (on: Server) => {
      const { sessionId } = await on.call("claude_code", { prompt, cwd });
      const { actions } = await on.news(sessionId);
      return actions.map(({ input }) => input["command"] ?? input["file_path"]);
    };
    expect(await asked(server)).toEqual([join(cwd, "out", "a")]);
    const trusting = await world.server({ ...quick, args: ["--trust-dir", dirname(cwd)] });
    expect(await asked(trusting)).toEqual(["touch other"]);
    expect([join(cwd, "made"), join(cwd, "out", "a")].filter((file) => !existsSync(file))).toEqual([]);
  });

  it("runs them when Claude Code's own record trusts it", async () => {
    const { cwd, ran } = hostile(world);
    // Every Claude Code that ends writes the record anew, as it knew it.
    await world.closeServers();
    await world.quiet(10_000);
    configure({ projects: { [cwd]: { hasTrustDialogAccepted: true } } });
    await run(await world.server(quick), cwd);
    expect(ran()).toContain("project-hook");
  });
});

describe("what the agent's shell can see", () => {
  it("is not the server's own settings and secrets", async () => {
    const server = await world.server({
      env: {
        CLAUDE_CODE_MCP_RESUME_SECRET: "s3cret-of-the-server",
        CLAUDECODE: "1",
        CLAUDE_CODE_ALLOWED_TOOLS: "Bash",
      },
    });
    const cwd = world.folder();
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([
        { tools: [{ name: "Bash", input: { command: "env > environment.txt; cat environment.txt" } }] },
        { text: "ok" },
      ]),
      cwd,
      allowedTools: ["Bash"],
      advanced: { env: { GIVEN_BY_CALLER: "yes" } },
    });
    const done = await server.end(sessionId);
    expect(done.result?.isError).toBe(false);
    const { readFileSync } = await import("node:fs");
    const seen = readFileSync(join(cwd, "environment.txt"), "utf8");
    expect(seen).toContain("GIVEN_BY_CALLER=yes");
    expect(seen).toContain("CLAUDE_CODE_MCP_DEPTH=1");
    expect(seen).not.toContain("s3cret");
    expect(seen).not.toContain("CLAUDE_CODE_ALLOWED_TOOLS");
  });
});

describe("a server whose gate is closed", () => {
  it("takes no prompt for a session that another server started with bypassPermissions", async () => {
    // Claude Code itself refuses the mode to root, unless it is told that it is confined.
    const open = await world.server({ args: ["--allow-bypass"], env: { IS_SANDBOX: "1" } });
    const closed = await world.server();
    const args = { cwd: world.folder(), permissionMode: "bypassPermissions", waitMs: 40_000 };
    const { result, sessionId } = await open.call("claude_code", { ...args, prompt: scriptTag([{ text: "hi" }]) });
    expect(result?.result).toBe("hi");
    const { code, text } = await closed.refusal("claude_code_reply", { sessionId, prompt: "more" });
    expect(code).toBe("PERMISSION_DENIED");
    expect(text).toContain("--allow-bypass");
    const again = { sessionId, prompt: scriptTag([{ text: "again" }]), waitMs: 40_000 };
    expect((await open.call("claude_code_reply", again)).result?.result).toBe("again");
  });
});
