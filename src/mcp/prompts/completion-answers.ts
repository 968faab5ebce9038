import {
  ProtocolError,
  ProtocolErrorCode,
  type CompleteRequest,
  type CompleteResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { complete, type ArgumentKind } from "./completions.ts";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import { mayUsePrompt } from "./prompts.ts";
import { callerOf } from "../caller.ts";
import type { ServerContent, ServerOptions } from "../server-options.ts";
import { toProtocolError } from "../protocol-errors.ts";

type Params = CompleteRequest["params"];

/** Completes an argument of a prompt, or a variable of a resource URI. */
export async function answerCompletion(
  { argument, context: typedBefore, ref }: Params,
  context: ServerContext,
  { library, prompts }: ServerContent,
  { deps, log }: Pick<ServerOptions, "deps" | "log">,
): Promise<CompleteResult> {
  const caller = callerOf(context);
  const name = argument.name.slice(0, 200);
  let kind: ArgumentKind | undefined;
  if (ref.type === "ref/prompt") {
    const prompt = prompts.find((each) => each.name === ref.name && mayUsePrompt(caller, each));
    const found = prompt?.arguments.find((each) => each.name === argument.name);
    if (!found) throw unknownTarget(`argument ${name} of the prompt ${ref.name.slice(0, 200)}`);
    ({ kind } = found);
  } else {
    const document = library.documents.find(({ uriTemplate }) => uriTemplate === ref.uri);
    const isPage = library.pages.some(({ uri }) => uri === ref.uri);
    if (!isPage && !document?.uriTemplate.includes(argument.name)) {
      throw unknownTarget(`variable ${name} of the resource ${ref.uri.slice(0, 200)}`);
    }
    kind = argument.name === "id" ? "session" : undefined;
  }
  // Other arguments cannot be predicted.
  if (kind === undefined) return { completion: { values: [], total: 0, hasMore: false } };
  try {
    const typed = { kind, text: argument.value.slice(0, 4_096), cwd: typedBefore?.arguments?.["cwd"] };
    return { completion: { ...(await complete(typed, caller, await deps())) } };
  } catch (error) {
    const report: ReportFault = (fault, cause) => log.error("a completion failed", { fault, error: cause });
    throw toProtocolError(asAppError(error, report));
  }
}

function unknownTarget(what: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Error [INVALID_ARGUMENT]: there is no ${what}.`);
}
