import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";

import { clientOf, serverProgram } from "./server.mjs";
import { prompt } from "./world.mjs";

/** Installed into the folder of the benchmark and removed with the folder. */
const PACKAGES = ["claude-agent-mcp@1.3.0", "@steipete/claude-code-mcp@1.10.12"];
const ASK = prompt({ text: "hi" });
const OURS = "claude-agents-mcp";

/** Requests a first turn of each server. `begin` returns a function that requests the next turn, if the server can continue. */
const SERVERS = {
  [OURS]: {
    program: (world) => serverProgram(world),
    async begin(call, cwd) {
      const { structuredContent } = await call("claude_code", { prompt: ASK, cwd, waitMs: 45_000 });
      const { sessionId } = structuredContent;
      return () => call("claude_code_reply", { sessionId, prompt: ASK, waitMs: 45_000 });
    },
  },
  "claude-agent-mcp": {
    program: (world, folder) => other(world, join(folder, "claude-agent-mcp", "dist", "cli.js")),
    async begin(call, cwd) {
      const { structuredContent } = await call("claude_session_create", { cwd });
      const { sessionId } = structuredContent;
      const turn = () => call("claude_chat_query", { sessionId, prompt: ASK });
      await turn();
      return turn;
    },
  },
  "@steipete/claude-code-mcp": {
    program: (world, folder) => other(world, join(folder, "@steipete", "claude-code-mcp", "dist", "server.js")),
    // Each call is a separate conversation: there is no next turn.
    begin: async (call, cwd) => void (await call("claude_code", { prompt: ASK, workFolder: cwd })),
  },
};

const OTHERS = Object.keys(SERVERS).filter((name) => name !== OURS);

export const otherServers = {
  name: "other-servers",
  long: true,
  about: "the same turns through other MCP servers for Claude Code, installed from npm for the benchmark",
  rows: ["initialize", "first turn", "later turn"].flatMap((what) =>
    OTHERS.map((name) => ({ row: `${name}: ${what}`, of: `${name}: ${what}`, base: `${OURS}: ${what}`, unit: "ms" })),
  ),
  async run({ figures, progress, rounds, world }) {
    progress(`npm install ${PACKAGES.join(" ")}`);
    const prefix = mkdtempSync(join(world.home, "others-"));
    const flags = ["--no-audit", "--no-fund", "--loglevel", "error"];
    execFileSync("npm", ["install", "--prefix", prefix, ...flags, ...PACKAGES], { stdio: ["ignore", 2, 2] });
    for (let round = 0; round <= rounds; round++) {
      if (round > 0) progress(`round ${String(round)} of ${String(rounds)}`);
      for (const [name, server] of Object.entries(SERVERS)) {
        // Skips round 0, in which programs are read from the disk.
        const note = (what, ms) => round > 0 && figures.note(`${name}: ${what}`, ms);
        await measure(server, { folder: join(prefix, "node_modules"), note, world });
      }
    }
  },
};

async function measure({ begin, program }, { folder, note, world }) {
  const server = program(world, folder);
  const timed = async (what, work) => {
    const began = performance.now();
    const value = await work();
    note(what, performance.now() - began);
    return value;
  };
  await timed("initialize", server.connect);
  const next = await timed("first turn", () => begin(server.call, world.folder()));
  if (next) await timed("later turn", next);
  await server.client.close();
  await world.quiet();
}

/**
 * Starts another server with `claude` in PATH. Sets `IS_SANDBOX`, because one server runs Claude Code without permission
 * requests, and Claude Code otherwise refuses root.
 */
function other(world, main) {
  const { arch, platform } = process;
  const manifest = `@anthropic-ai/claude-agent-sdk-${platform}-${arch}/package.json`;
  const claude = dirname(createRequire(import.meta.url).resolve(manifest));
  const PATH = [claude, world.environment.PATH].join(delimiter);
  return clientOf(process.execPath, [main], { ...world.environment, PATH, IS_SANDBOX: "1" }, "ignore");
}
