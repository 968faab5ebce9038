/**
 * An MCP server of a session, over stdio: `ping` answers, `question` first asks the user of its client. Appends each answer of
 * the user to the file ANSWERS.
 */
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const inputSchema = { type: "object" };
const RESULTS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "mini", version: "1.0.0" },
  }),
  "tools/list": () => ({
    tools: ["ping", "question"].map((name) => ({ name, description: name, inputSchema })),
  }),
};
const QUESTION = {
  message: "Which colour?",
  requestedSchema: { type: "object", properties: { colour: { type: "string" } } },
};

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (said) => ({ content: [{ type: "text", text: said }] });
let asking;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined && process.env.ANSWERS) appendFileSync(process.env.ANSWERS, `${result.action}\n`);
  if (method === undefined) send({ id: asking, result: text(`answered ${JSON.stringify(result)}`) });
  else if (method === "tools/call" && params.name === "question") {
    asking = id;
    send({ id: "the-question", method: "elicitation/create", params: QUESTION });
  } else if (method === "tools/call") send({ id, result: text("PONG") });
  else if (id !== undefined) send({ id, result: RESULTS[method]?.(params) ?? {} });
}
