import {
  isSpecType,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  type ListToolsResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Caller, Scope } from "../domain/principal.ts";
import type { ToolLimits } from "../tools/arguments/wait-limits.ts";
import type { NeedsInput } from "../tools/elicitation/needs-input.ts";
import { runTool, type Tool, type ToolDeps } from "../tools/define.ts";
import { mayUse, requiredScope } from "../tools/scope.ts";
import { replyWithError, type ToolReply } from "../tools/errors.ts";
import { isLegacy, limitsOf, openCall, roundOf, type ClientFacts } from "./tool-call.ts";
import { callerOf } from "./caller.ts";
import { askDuringCall, endWithForms } from "./forms.ts";
import { readMessage } from "./message.ts";
import type { ServerOptions } from "./server-options.ts";
import { metaForModel, taskTimes } from "./tasks/extension.ts";

interface ToolAnswers {
  list(context: ServerContext): ListToolsResult;
  call(params: CallToolRequest["params"], context: ServerContext): Promise<CallToolResult | InputRequiredResult>;
}

/** Lists and calls tools. Accepts any arguments, because tools/ validates them and reports errors. */
export function toolAnswers(
  tools: readonly Tool[],
  saidByClient: () => ClientFacts,
  options: ServerOptions,
): ToolAnswers {
  return {
    // Omits tools that the caller cannot use, to save context.
    list: (context) => {
      const caller = callerOf(context);
      const limits = limitsOf(context, saidByClient(), options);
      return { tools: tools.filter((tool) => mayUse(caller, tool)).map((tool) => listing(tool, limits, options)) };
    },
    call: async ({ name, arguments: args = {} }, context) => {
      const tool = tools.find((each) => each.name === name);
      if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool ${name.slice(0, 200)} not found`);
      const limits = limitsOf(context, saidByClient(), options);
      let round = roundOf(context);
      const reported = { progress: 0 };
      for (;;) {
        const { call, settled } = openCall(context, saidByClient(), {
          round,
          reported,
          unattended: options.unattended,
          leaving: options.leaving,
        });
        const run = async (signal: AbortSignal) =>
          withDeps(options, async (deps) => runTool(tool, args, { ...call, signal }, { ...deps, limits }));
        const reply = await (options.leaving?.runCall(call.signal, run) ?? run(call.signal));
        await settled();
        if (!("needsInput" in reply)) return { ...resultOf(reply), ...taskFields(reply, options) };
        if (!isLegacy(context)) return endWithForms(reply.needsInput, context, options.states);
        round = await askDuringCall(reply.needsInput, context);
      }
    },
  };
}

/** Adds the task to a reply, besides its state at the start, if the client gets tasks. */
function taskFields({ task, text }: ToolReply, { tasks }: ServerOptions): object {
  return task && tasks ? { resultType: "task", ...task, ...taskTimes(tasks), _meta: metaForModel(text) } : {};
}

export function resultOf({ isError, more = [], structured, text }: ToolReply): CallToolResult {
  const content = [text, ...more].map((block) => ({ type: "text" as const, text: block }));
  return { content, structuredContent: structured, ...(isError && { isError }) };
}

function listing(tool: Tool, limits: ToolLimits, { reported }: ServerOptions): ListToolsResult["tools"][number] {
  const { name, title, annotations, meta } = tool;
  const described = tool.describe(limits);
  return {
    name,
    title,
    description: reported?.describe(name, described) ?? described,
    inputSchema: { ...tool.inputSchema(limits), type: "object" },
    annotations,
    ...(meta && { _meta: meta }),
    outputSchema: { ...tool.outputSchema(), type: "object" },
  };
}

async function withDeps<T = { readonly needsInput: NeedsInput }>(
  { deps, log }: ServerOptions,
  run: (deps: ToolDeps) => Promise<T>,
): Promise<T | ToolReply> {
  let ready: ToolDeps;
  try {
    ready = await deps();
  } catch (error) {
    return replyWithError(error, (fault, cause) => log.error("the engine did not start", { fault, error: cause }));
  }
  return run(ready);
}

/** Returns a scope that a call in `body` needs and the caller lacks. */
export function scopeMissing(tools: readonly Tool[], { scopes }: Caller, body: unknown): Scope | undefined {
  const needed = callsIn(tools, body).map(({ params, tool }) => requiredScope(tool, params.arguments));
  return needed.find((scope) => !scopes.includes(scope));
}

/** True if `body` calls a tool that accepts images. */
export function takesAttachments(tools: readonly Tool[], body: unknown): boolean {
  return callsIn(tools, body).some(({ tool }) => Object.hasOwn(tool.input.shape, "attachments"));
}

/** Finds the calls in `body`, normalized by `readMessage` as in the endpoint. */
function callsIn(tools: readonly Tool[], body: unknown) {
  const messages = [body].flat().map((value: unknown) => readMessage(value).message);
  const calls = messages.filter((message) => isSpecType.CallToolRequest(message));
  return calls.flatMap(({ params }) => {
    const tool = tools.find(({ name }) => name === params.name);
    return tool ? [{ params, tool }] : [];
  });
}
