/** The smallest MCP server over stdio, for comparison: one tool, no package. Ours takes five times as long to start. */
import { createInterface } from "node:readline";

const serverInfo = { name: "least", version: "1.0.0" };
const RESULTS = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo }),
  "tools/list": () => ({ tools: [{ name: "look", description: "Looks around.", inputSchema: { type: "object" } }] }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  // Notifications are not answered.
  if (id === undefined) continue;
  const result = RESULTS[method]?.(params);
  const answer = result ? { result } : { error: { code: -32601, message: `There is no ${method}.` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
}
