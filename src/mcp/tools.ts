import {
  isSpecType,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  type ListToolsResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Caller, Scope } from "../domain/principal.ts";
import { runTool, type Tool, type ToolDeps } from "../tools/define.ts";
import { mayUse, scopeOf } from "../tools/scope.ts";
import { replyWithError, type ToolReply } from "../tools/errors.ts";
import { openCall, type Said } from "./call.ts";
import { callerOf } from "./caller.ts";
import type { ServerOptions } from "./options.ts";

interface ToolAnswers {
  list(context: ServerContext): ListToolsResult;
  call(params: CallToolRequest["params"], context: ServerContext): Promise<CallToolResult>;
}

/** Lists tools and calls them. Every argument is let through: tools/ says what is wrong with it. */
export function toolAnswers(tools: readonly Tool[], saidByClient: () => Said, options: ServerOptions): ToolAnswers {
  return {
    // What a caller cannot use would only take up its context.
    list: (context) => {
      const caller = callerOf(context);
      return { tools: tools.filter((tool) => mayUse(caller, tool)).map((tool) => listed(tool, options)) };
    },
    call: async ({ name, arguments: args = {} }, context) => {
      const tool = tools.find((each) => each.name === name);
      if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool ${name.slice(0, 200)} not found`);
      const { call, settled } = openCall(context, saidByClient());
      const reply = await withDeps(options, async (deps) => runTool(tool, args, call, deps));
      await settled();
      const { text, more = [], structured, isError } = reply;
      const content = [text, ...more].map((block) => ({ type: "text" as const, text: block }));
      return { content, structuredContent: structured, ...(isError && { isError }) };
    },
  };
}

function listed(tool: Tool, { limits, reported }: ServerOptions): ListToolsResult["tools"][number] {
  const { name, title, annotations, meta } = tool;
  return {
    name,
    title,
    description: reported?.describe(tool) ?? tool.description,
    inputSchema: { ...tool.inputSchema(limits), type: "object" },
    annotations,
    ...(meta && { _meta: meta }),
    outputSchema: { ...tool.outputSchema(), type: "object" },
  };
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

/** A scope that calls in a body need and their caller has not. */
export function scopeMissing(tools: readonly Tool[], { scopes }: Caller, body: unknown): Scope | undefined {
  const calls = [body].flat().filter((message) => isSpecType.CallToolRequest(message));
  const needed = calls.flatMap(({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    return tool ? [scopeOf(tool, params.arguments)] : [];
  });
  return needed.find((scope) => !scopes.includes(scope));
}
