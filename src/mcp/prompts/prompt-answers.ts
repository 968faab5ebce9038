import {
  ProtocolError,
  ProtocolErrorCode,
  type GetPromptRequest,
  type GetPromptResult,
  type ListPromptsResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { requireScope } from "../../engine/actions/scope.ts";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import type { Prompt } from "./define-prompt.ts";
import { mayUsePrompt } from "./prompts.ts";
import { callerOf } from "../caller.ts";
import type { ServerOptions } from "../server-options.ts";
import { limitsOf, type ClientFacts } from "../tool-call.ts";
import { toProtocolError } from "../protocol-errors.ts";

interface PromptAnswers {
  list(context: ServerContext): ListPromptsResult;
  get(params: GetPromptRequest["params"], context: ServerContext): Promise<GetPromptResult>;
}

/** Lists prompts and writes their texts. Errors in arguments read like those of tools. */
export function promptAnswers(
  prompts: readonly Prompt[],
  said: () => Pick<ClientFacts, "clientInfo">,
  options: Pick<ServerOptions, "deps" | "limits" | "log" | "tasks">,
): PromptAnswers {
  const { deps, log } = options;
  return {
    list: (context) => ({
      prompts: prompts
        .filter((prompt) => mayUsePrompt(callerOf(context), prompt))
        .map(({ arguments: all, description, name, title }) => ({
          name,
          title,
          description,
          arguments: all.map((each) => ({ name: each.name, description: each.description, required: each.required })),
        })),
    }),
    get: async ({ arguments: args, name }, context) => {
      const prompt = prompts.find((each) => each.name === name) ?? throwUnknownPrompt(name, prompts);
      try {
        const caller = callerOf(context);
        for (const scope of prompt.scopes) requireScope(caller, scope, `The prompt ${name}`);
        const limits = limitsOf(context, said(), options);
        const text = await prompt.text(args ?? {}, { ...caller, limits }, deps);
        return { description: prompt.description, messages: [{ role: "user", content: { type: "text", text } }] };
      } catch (error) {
        const report: ReportFault = (fault, cause) =>
          log.error("a prompt failed", { fault, prompt: name, error: cause });
        throw toProtocolError(asAppError(error, report));
      }
    },
  };
}

function throwUnknownPrompt(name: string, prompts: readonly Prompt[]): never {
  const names = prompts.map((prompt) => prompt.name).join(", ");
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Error [INVALID_ARGUMENT]: name: there is no prompt ${JSON.stringify(name.slice(0, 200))}. There are: ${names}.`,
  );
}
