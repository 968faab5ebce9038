import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { connectTo, type Server } from "../kit/servers/stdio-server.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { SHORT_LIVED, useWorld } from "../kit/world.ts";

/** Access of a session to its own servers: through its shell, and through a URL in Claude Code's settings. */

const main = resolve("dist/cli/main.js");

describe("a server started by a session's shell", () => {
  const world = useWorld({ agent: "stand-in" });
  let outer: Server;
  let cwd: string;
  let sessionId: string;
  let requestId: string | undefined;
  beforeAll(async () => {
    outer = await world.server();
    cwd = world.folder();
    ({ sessionId } = await outer.call("claude_code", { prompt: toolCalls([writeCall(join(cwd, "made"))]), cwd }));
    requestId = (await outer.news(sessionId)).actions[0]?.requestId;
  });

  /**
   * Connects to a server started by a shell with CLAUDE_CODE_MCP_DEPTH, the mark of a session, in the shell's environment or an
   * empty one.
   */
  async function inside(how: "with its environment" | "with an empty one"): Promise<Server> {
    const plain = {
      ...world.model.environment(world.configFolder),
      ...SHORT_LIVED,
      HOME: resolve(world.configFolder, ".."),
    };
    const marked = { ...plain, CLAUDE_CODE_MCP_DEPTH: "1" };
    const args = [main, "serve", "--toolsets", "all", "--log-level", "silent"];
    const env = how === "with an empty one" ? plain : marked;
    const script = `require("node:child_process").spawn(process.execPath, ${JSON.stringify(args)}, { env: ${JSON.stringify(env)}, stdio: "inherit" })`;
    return connectTo("modern", ["-e", script], marked);
  }

  it.each(["with its environment", "with an empty one"] as const)(
    "a server in a session's shell, started %s, can read but not start, answer or change anything",
    async (how) => {
      expect(requestId).toBeTypeOf("string");
      const shell = await inside(how);
      expect((await shell.call("claude_code_session", { action: "get", sessionId })).sessions).toHaveLength(1);
      const seen = await shell.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      expect(seen.actions).toMatchObject([{ requestId }]);
      const acts: [string, object][] = [
        ["claude_code", { prompt: "x", cwd }],
        ["claude_code_reply", { sessionId, prompt: "x", whenBusy: "queue" }],
        ["claude_code_check", { action: "respond_permission", sessionId, requestId, decision: "allow" }],
        ["claude_code_check", { action: "respond_permission", sessionId, requestId, decision: "deny" }],
        ["claude_code_session", { action: "set_permission_mode", sessionId, permissionMode: "plan" }],
        ["claude_code_session", { action: "revoke", sessionId }],
        ["claude_code_session", { action: "cancel", sessionId }],
        ["claude_code_session", { action: "rename", sessionId, title: "x" }],
        ["claude_code_session", { action: "delete", sessionId }],
        ["claude_session_create", { cwd }],
        ["claude_code_configure", { action: "enable_bypass" }],
      ];
      for (const [tool, args] of acts) {
        const refused = await shell.refusal(tool, { ...args });
        expect([tool, refused.code, refused.text.includes("runs inside a session")]).toEqual([
          tool,
          "PERMISSION_DENIED",
          true,
        ]);
      }
      await shell.close();
      // A daemon would outlive the session, and know nothing of it.
      expect(world.daemons()).toEqual([]);
      const still = await outer.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      expect(still.actions).toMatchObject([{ requestId }]);
    },
  );
});

describe("servers of a store that are reachable over HTTP", () => {
  const world = useWorld();
  beforeAll(async () => {
    const http = await world.http();
    await vi.waitUntil(async () => (await http.fetch("/readyz")).status === 200, 15_000);
    const headers = { Authorization: `Bearer ${http.token}` };
    const { port } = new URL(http.url);
    const urls = [http.url, `http://localhost:${port}/mcp`, `http://[::1]:${port}/mcp`, `HTTP://LocalHost:${port}/mcp`];
    const named = urls.map((url, index) => [`agents-${String(index)}`, { type: "http", url, headers }]);
    const settings = { mcpServers: Object.fromEntries(named) as Record<string, object> };
    writeFileSync(join(world.configFolder, ".claude.json"), JSON.stringify(settings));
  });

  it.each([[[]], [["--max-depth", "3"]]])(
    "servers of a store are used by no session of another server (%j), by any of their names",
    async (args) => {
      const stdio = await world.server({ args, env: { ENABLE_TOOL_SEARCH: "false" } });
      const prompt = scriptTag([{ text: "hi" }]);
      const { sessionId } = await stdio.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
      const { tools } = await world.model.waitForRequest((request) => request.sessionId === sessionId);
      expect(tools.length).toBeGreaterThan(3);
      expect(tools.filter((name) => name.includes("claude_code"))).toEqual([]);
    },
  );
});
