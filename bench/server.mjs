/** Drives the built server through a real MCP client. */
import { join } from "node:path";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** Time limit of a call, ms. Longer than any wait that a benchmark requests. */
const TIMEOUT_MS = 600_000;

/** Additional arguments of Node, such as `--cpu-prof`. */
export const nodeArguments = [];

export function profileServersInto(folder) {
  nodeArguments.push("--cpu-prof", "--cpu-prof-dir", folder);
}

let main = "dist/cli/main.js";

/** Returns the main script of the measured build. */
export function mainProgram() {
  return main;
}

export function measureBuild(dist) {
  main = join(dist, "cli", "main.js");
}

/** Returns a client of the program, not yet connected. */
export function clientOf(command, args, env, stderr = "inherit") {
  const transport = new StdioClientTransport({ command, args, env, stderr });
  const client = new Client({ name: "bench", version: "1" });
  return {
    client,
    connect: async () => client.connect(transport),
    pid: () => transport.pid,
    async call(name, given) {
      const answer = await client.callTool({ name, arguments: given }, { timeout: TIMEOUT_MS });
      if (answer.isError) throw new Error(`${name}: ${JSON.stringify(answer.content).slice(0, 500)}`);
      return answer;
    },
  };
}

/**
 * Returns the server in `world`, on its own store unless `flags` name another, not yet connected. Without spares unless `flags`
 * request them, because their start would distort the figures.
 */
export function serverProgram(world, flags = []) {
  return serving(world, ["--daemon", "off", "--log-level", "error", "--spares", "0", ...flags]);
}

/** Long enough that a proxy on a busy machine does not fall back to a server of its own, ms. */
const DAEMON_START_MS = 60_000;

/**
 * Returns the program that a client starts by default. The proxy connects to the daemon of `world`, whose settings are in the
 * user's file, and starts the daemon if there is none.
 */
export function proxyProgram(world, flags = []) {
  return serving(world, flags, { daemonStartMs: DAEMON_START_MS });
}

/** `constants` override constants of src/config/constants.ts, beside `world.constants`. */
function serving({ constants: shared = {}, environment }, flags, constants = {}) {
  const args = [...nodeArguments, main, "serve", ...flags];
  const given = { CLAUDE_CODE_MCP_CONSTANTS: JSON.stringify({ ...constants, ...shared }) };
  return clientOf(process.execPath, args, { ...environment, ...given });
}

/** Returns a started and initialized server. */
export async function startServer(world, flags = [], programOf = serverProgram) {
  const program = programOf(world, flags);
  await program.connect();
  const server = {
    pid: program.pid(),
    client: program.client,
    /** Returns the structured content of an answer. */
    async call(tool, args) {
      return (await program.call(tool, args)).structuredContent;
    },
    answer: async (tool, args) => program.call(tool, args),
    /** Starts a session and returns its id. */
    async begin(prompt, options = {}) {
      return (await server.call("claude_code", { prompt, cwd: world.folder(), ...options })).sessionId;
    },
    /** Waits until no turn runs. */
    async end(sessionId) {
      for (;;) {
        const wait = { action: "poll", sessionId, until: "end", waitMs: 45_000, maxEvents: 1 };
        const answer = await server.call("claude_code_check", wait);
        if (answer.actions?.length > 0) throw new Error(`asked: ${JSON.stringify(answer.actions)}`);
        if (answer.result?.isError) throw new Error(`the turn failed: ${answer.result.result}`);
        if (answer.status !== "running") return answer;
      }
    },
    async turn(sessionId, prompt) {
      return server.call("claude_code_reply", { sessionId, prompt, waitMs: 45_000 });
    },
    tools: async () => program.client.listTools(),
    close: async () => program.client.close(),
  };
  return server;
}
