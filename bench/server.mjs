/** The built server, as a real MCP client uses it. */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** Longer than any wait that a benchmark asks for. */
const TIMEOUT_MS = 600_000;

/** More arguments for Node itself: what `--cpu-prof` of the benchmarks asks for. */
export const nodeArguments = [];

export function profileServersInto(folder) {
  nodeArguments.push("--cpu-prof", "--cpu-prof-dir", folder);
}

/** A client of the program, not connected yet. */
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

/** Our server in this world, on its store unless another is named; not connected yet. */
export function serverProgram(world, flags = []) {
  const args = [...nodeArguments, "dist/cli/main.js", "serve", "--log-level", "error", ...flags];
  return clientOf(process.execPath, args, world.environment);
}

/** The same, up and initialized. Without spares, unless the flags ask for some: their start would be in somebody's figures. */
export async function startServer(world, flags = []) {
  const program = serverProgram(world, ["--spares", "0", ...flags]);
  await program.connect();
  const server = {
    pid: program.pid(),
    /** What the answer says, and what it is in bytes for whoever reads it. */
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
    /** One whole turn of a session that is there. */
    async turn(sessionId, prompt) {
      return server.call("claude_code_reply", { sessionId, prompt, waitMs: 45_000 });
    },
    tools: async () => program.client.listTools(),
    close: async () => program.client.close(),
  };
  return server;
}
