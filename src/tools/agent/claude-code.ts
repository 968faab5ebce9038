import { z } from "zod";
import { AdvancedOptions, SessionOptions } from "../../domain/options.ts";
import { start } from "../../engine/actions/begin.ts";
import { mergeOptions } from "../arguments/parse.ts";
import { correctToolNames, thinkingWarnings } from "../check-options.ts";
import { keysAndTypes, type Advertised } from "../input-schema.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import {
  ADVERTISED_ATTACHMENTS,
  endingWithClient,
  resolveFolder,
  approvalLimits,
  IdempotencyKey,
  PromptOptions,
  promptFields,
} from "../prompt.ts";
import { actingCaller } from "../scope.ts";
import { answerTurn, SentPrompt } from "../turn-answer.ts";
import { WaitMs, waitWithin } from "../waiting.ts";

const { cwd, ...options } = SessionOptions.shape;

const Input = z.strictObject({
  ...promptFields,
  cwd: cwd.exactOptional(),
  ...options,
  waitMs: WaitMs.exactOptional().describe("Default: 0"),
  idempotencyKey: IdempotencyKey,
  ...PromptOptions.shape,
  advanced: AdvancedOptions.extend(PromptOptions.shape).exactOptional().describe("options, below. Default: {}"),
});

type Input = z.infer<typeof Input>;

const NAME = "claude_code";
const ADVANCED = Object.keys({ ...AdvancedOptions.shape, ...PromptOptions.shape });

/**
 * Short schemas for `tools/list`, which full ones would more than double. Arguments are checked by `Input`, and errors name the
 * wrong field.
 */
const ADVERTISED: Advertised = {
  attachments: ADVERTISED_ATTACHMENTS,
  // Some clients refuse an object without `properties`. The description repeats the options because many clients have no
  // resources.
  advanced: (derived) => ({
    type: "object",
    properties: {},
    description: `${keysAndTypes(derived)}. See claude-code://options. Default: {}`,
  }),
  systemPrompt: {
    anyOf: [{ type: "string" }, { type: "object", properties: {} }],
    description: "replaces Claude Code's; {type: preset, preset: claude_code, append} extends it. Default: none",
  },
};

const AT_ONCE =
  "Returns at once, or with the result or actions[] that come within waitMs. Poll it and answer its requests with claude_code_check; continue with claude_code_reply.";
const AS_TASK =
  "Returns at once. The result comes by itself, as a notification, and requests are shown to the user in a form; continue with claude_code_reply.";
const WAITING =
  "Waits for the result, or for actions[] to answer with claude_code_check, at most for waitMs; continue with claude_code_reply.";

/** Starts a session. Waits for Claude Code only with `waitMs`. */
export const claudeCode = defineTool({
  name: NAME,
  title: "Start Claude Code",
  description: ({ followsTasks, waitsByDefault }) =>
    `Start Claude Code as a background agent that outlives the call. ${followsTasks ? AS_TASK : waitsByDefault ? WAITING : AT_ONCE}`,
  input: Input,
  // Options beside `prompt`: accepted, but listed only in `advanced`, because a second list would cost every model a page of
  // context.
  unlisted: ADVANCED,
  advertised: ADVERTISED,
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  scope: start.scope,
  meta: { "anthropic/alwaysLoad": true },
  async handle(args, call, deps) {
    const waitMs = waitWithin(args.waitMs, 0, deps.limits);
    const begun = SentPrompt.parse(previousRound(NAME, call)?.work ?? (await begin(args, call, deps)));
    return answerTurn(begun, { tool: NAME, waitMs }, { call, deps });
  },
});

async function begin(args: Input, call: ToolCall, deps: ToolDeps): Promise<SentPrompt> {
  const { endWithClient = false, ...given } = optionsIn(args, resolveFolder(args.cwd, deps));
  const { options: chosen, warnings } = correctToolNames(given);
  const bind = endingWithClient(endWithClient, call, deps);
  const { attachments, idempotencyKey, prompt: text } = args;
  const prompt = {
    text,
    via: NAME,
    limits: { ...approvalLimits(call), ...(endWithClient && { endWithClient }) },
    ...(attachments && { attachments }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const { sessionId, cursor, withheld } = await start.run(actingCaller(call, deps), { options: chosen, prompt });
  await bind({ sessionId, cursor });
  return { sessionId, cursor, warnings: [...warnings, ...thinkingWarnings(chosen), ...withheld] };
}

/** Merges options beside `prompt` with those in `advanced`. An option in both must be equal. */
function optionsIn(args: Input, folder: string): SessionOptions & z.infer<typeof PromptOptions> {
  const { prompt: _, attachments: _a, waitMs: _w, idempotencyKey: _k, advanced: nested = {}, ...flat } = args;
  return { ...mergeOptions(flat, nested, "advanced"), cwd: folder };
}
