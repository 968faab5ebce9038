import { McpServer } from "@modelcontextprotocol/server";
import { instructionsFor } from "../tools/instructions.ts";
import type { ToolName } from "../tools/listed.ts";
import type { ReportedTools } from "../tools/reported-tools.ts";
import type { ServerOptions } from "./options.ts";

/**
 * From tools to an MCP server. The SDK moves messages; what is valid and what is said is decided in tools/. Nothing that
 * `initialize` can do without is imported here: the rest is loaded behind its answer.
 */

const TITLE = "Claude Code as a background agent";

/** A server for one connection, or for one request. Side-effect free: a client may probe with one and use another. */
export function createMcpServer(options: ServerOptions): McpServer {
  const { info, logs, reported, toolNames } = options;
  const { name, version } = info;
  const server = new McpServer(
    { name, title: TITLE, version },
    {
      capabilities: {
        tools: { listChanged: reported !== undefined },
        resources: { listChanged: false },
        ...(logs && { logging: {} }),
      },
      instructions: instructionsFor(toolNames),
    },
  );
  if (reported) followReports(server, reported, toolNames);
  answerLater(server, options);
  // A client asks for the tools next: they are loaded while the answer to its first message is on its way.
  setImmediate(() => void options.offer().catch(() => undefined));
  return server;
}

/**
 * Answers for tools and resources. Not through the SDK's own registration: it wants every tool before it connects, and
 * its templates match a query only when all of its parameters are there, in their order.
 */
function answerLater({ server }: McpServer, options: ServerOptions): void {
  const tools = async () => {
    const [{ toolAnswers }, { tools: all }] = await Promise.all([import("./tools.ts"), options.offer()]);
    // oxlint-disable-next-line typescript/no-deprecated -- in the 2025 era nothing else tells
    return toolAnswers(all, () => server.getClientCapabilities(), options);
  };
  const resources = async () => {
    const [{ resourceAnswers }, { library }] = await Promise.all([import("./resources.ts"), options.offer()]);
    return resourceAnswers(library, options);
  };
  server.setRequestHandler("tools/list", async (_, context) => (await tools()).list(context));
  server.setRequestHandler("tools/call", async ({ params }, context) => (await tools()).call(params, context));
  server.setRequestHandler("resources/list", async (_, context) => (await resources()).list(context));
  server.setRequestHandler("resources/templates/list", async (_, context) =>
    (await resources()).listTemplates(context),
  );
  server.setRequestHandler("resources/read", async ({ params }, context) => (await resources()).read(params, context));
}

function followReports(server: McpServer, reported: ReportedTools, listed: readonly ToolName[]): void {
  const stop = reported.onChange(() => {
    if (listed.some((name) => reported.describes(name))) server.sendToolListChanged();
  });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a server is no event target
  server.server.onclose = stop;
}
