#!/usr/bin/env node
// A client that works until killed or until its stdin ends: starts the sessions of the JSON list in its first argument and allows
// their requests. The remaining arguments are the command line of its server. Prints `connected`, and `begun` once each start is
// answered.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [, , starts = "[]", ...args] = process.argv;
const transport = new StdioClientTransport({
  command: process.execPath,
  args,
  env: { ...process.env },
  stderr: "ignore",
});
const client = new Client({ name: "load", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
process.stdin.resume().on("end", () => process.exit());
await client.connect(transport);
process.stdout.write("connected\n");

/** Resolves with `undefined` if the daemon dies meanwhile. */
async function call(name, given) {
  const { structuredContent } = await client.callTool({ name, arguments: given }).catch(() => ({}));
  return structuredContent;
}

async function follow({ sessionId } = {}) {
  while (sessionId !== undefined) {
    const poll = { action: "poll", sessionId, waitMs: 5_000 };
    const { actions = [], status = "running" } = (await call("claude_code_check", poll)) ?? {};
    if (status !== "running" && actions.length === 0) return;
    for (const { requestId } of actions) {
      await call("claude_code_check", { action: "respond_permission", sessionId, requestId, decision: "allow" });
    }
  }
}

const sessions = await Promise.all(JSON.parse(starts).map(async (start) => call("claude_code", start)));
process.stdout.write("begun\n");
await Promise.all(sessions.map(follow));
