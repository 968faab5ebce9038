import {
  McpServer,
  type CallToolResult,
  type RegisteredTool,
  type ServerContext,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import type { JsonObject } from "../domain/json.ts";
import type { Principal } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import { runTool, type Tool, type ToolDeps, type ToolLimits } from "../tools/define.ts";
import { replyWithError, type ToolReply } from "../tools/errors.ts";
import { instructionsFor } from "../tools/instructions.ts";
import type { ReportedTools } from "../tools/reported-tools.ts";
import type { Library } from "../tools/resources/define.ts";
import { openCall } from "./call.ts";
import { serveResources } from "./resources.ts";

/** From tools to an MCP server. The SDK moves messages; what is valid and what is said is decided in tools/. */

export interface ServerOptions {
  readonly tools: readonly Tool[];
  readonly library: Library;
  /** Given where descriptions are to follow what Claude Code says of its tools. */
  readonly reported: ReportedTools | undefined;
  readonly limits: ToolLimits;
  /** Some tool tells what it does in log notifications. */
  readonly logs: boolean;
  /** Resolved by the first tool call: listing tools must not wait for what runs them. */
  readonly deps: () => Promise<ToolDeps>;
  readonly info: { readonly name: string; readonly version: string };
  readonly log: Pick<Logger, "error" | "warn">;
  readonly principal: Principal;
}

const TITLE = "Claude Code as a background agent";

/** A server for one connection, or for one request. Side-effect free: a client may probe with one and use another. */
export function createMcpServer(options: ServerOptions): McpServer {
  const { info, logs, reported } = options;
  const { name, version } = info;
  const server = new McpServer(
    { name, title: TITLE, version },
    {
      capabilities: {
        tools: { listChanged: reported !== undefined },
        resources: { listChanged: false },
        ...(logs && { logging: {} }),
      },
      instructions: instructionsFor(options.tools),
    },
  );
  const registered = new Map<Tool, RegisteredTool>();
  for (const tool of options.tools) {
    const { title, annotations, meta } = tool;
    const config = {
      title,
      description: reported?.describe(tool) ?? tool.description,
      annotations,
      inputSchema: accepting(() => tool.inputSchema(options.limits)),
      outputSchema: accepting(() => tool.outputSchema()),
      ...(meta && { _meta: meta }),
    };
    const run: RunTool = async (args, context) => callTool(tool, args, context, { server, options });
    registered.set(tool, server.registerTool(tool.name, config, run));
  }
  if (reported) followReports(server, registered, reported);
  serveResources(server, options);
  return server;
}

type RunTool = (args: unknown, context: ServerContext) => Promise<CallToolResult>;

/** An update tells the client that the list has changed, so only what has changed is updated. */
function followReports(
  server: McpServer,
  registered: ReadonlyMap<Tool, RegisteredTool>,
  reported: ReportedTools,
): void {
  const stop = reported.onChange(() => {
    for (const [tool, known] of registered) {
      const description = reported.describe(tool);
      if (description !== known.description) known.update({ description });
    }
  });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a server is no event target
  server.server.onclose = stop;
}

/** Tells the SDK what to list, and has it let every argument through: tools/ says what is wrong with them. */
function accepting(schema: () => JsonObject): StandardSchemaWithJSON<unknown, unknown> {
  const jsonSchema = { input: schema, output: schema };
  return { "~standard": { version: 1, vendor: "claude-code-mcp", validate: (value) => ({ value }), jsonSchema } };
}

interface Connection {
  readonly server: McpServer;
  readonly options: ServerOptions;
}

async function callTool(
  tool: Tool,
  args: unknown,
  context: ServerContext,
  { server, options }: Connection,
): Promise<CallToolResult> {
  // oxlint-disable-next-line typescript/no-deprecated -- in the 2025 era nothing else tells
  const capabilities = server.server.getClientCapabilities();
  const { call, settled } = openCall(context, { principal: options.principal, capabilities });
  const reply = await withDeps(options, async (deps) => runTool(tool, args, call, deps));
  await settled();
  const { text, more = [], structured, isError } = reply;
  const content = [text, ...more].map((block) => ({ type: "text" as const, text: block }));
  return { content, structuredContent: structured, ...(isError && { isError }) };
}

async function withDeps({ deps, log }: ServerOptions, run: (deps: ToolDeps) => Promise<ToolReply>): Promise<ToolReply> {
  let ready: ToolDeps;
  try {
    ready = await deps();
  } catch (error) {
    return replyWithError(error, (fault, cause) => log.error("the engine did not start", { fault, error: cause }));
  }
  return run(ready);
}
