import { z } from "zod";
import { AppError, invalidArgument } from "../../domain/error.ts";
import { SessionOptions } from "../../domain/options.ts";
import { verifyOf } from "../../domain/verification.ts";
import { adopt, fork, reply } from "../../engine/actions/begin.ts";
import type { PromptRequest } from "../../engine/api.ts";
import { mergeOptions } from "../arguments/parse.ts";
import { correctToolNames, thinkingWarnings } from "../check-options.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import {
  ADVERTISED_ATTACHMENTS,
  endingWithClient,
  approvalLimits,
  IdempotencyKey,
  PromptOptions,
  promptFields,
} from "../prompt.ts";
import { checkDiskResume, isWrongToken } from "../resume-token.ts";
import { actingCaller } from "../scope.ts";
import { answerTurn, SentPrompt } from "../turn-answer.ts";
import { WaitMs, waitWithin } from "../waiting.ts";

const { cwd, timeout, permissionRequestTimeoutMs, verify: _, ...options } = SessionOptions.shape;
/**
 * Options of a session from disk may also be given beside `prompt`. `timeout`, `permissionRequestTimeoutMs` and `verify` are
 * left out: beside `prompt` they apply to this turn. A session in the store keeps its `profile`, and refuses another.
 */
const flatOptions = { cwd: cwd.exactOptional(), ...options };
/** Options for resuming a session unknown to this server. */
const DiskOptions = z.strictObject({
  ...flatOptions,
  timeout,
  permissionRequestTimeoutMs,
  verify: PromptOptions.shape.verify,
});

const NO_UUID = "must be the uuid of a message. Poll with responseMode full to see them";

const Input = z.strictObject({
  sessionId: reply.fields.sessionId,
  ...promptFields,
  whenBusy: reply.fields.whenBusy.describe("Default: reject"),
  forkSession: z.boolean().exactOptional().describe("Default: false"),
  resumeSessionAt: z.guid(NO_UUID).exactOptional().describe("message to go back to. Default: none"),
  timeout: timeout.unwrap().exactOptional().describe("ms for this turn. Default: the session's"),
  permissionRequestTimeoutMs: permissionRequestTimeoutMs.unwrap().exactOptional().describe("Default: the session's"),
  waitMs: WaitMs.exactOptional().describe("Default: 0"),
  idempotencyKey: IdempotencyKey.describe("Default: none"),
  resumeToken: z.string().max(200).exactOptional().describe("for a session from disk. Default: none"),
  diskResumeConfig: DiskOptions.exactOptional(),
  advanced: PromptOptions.exactOptional(),
  ...PromptOptions.shape,
  ...flatOptions,
});
type Input = z.infer<typeof Input>;

const NAME = "claude_code_reply";

/** Sends a prompt to a session. Any process or server may have run the session before. */
export const claudeCodeReply = defineTool({
  name: NAME,
  title: "Reply to Claude Code",
  description:
    "Send the next prompt to a session, also after an error or a restart. Arguments and answer as in claude_code.",
  input: Input,
  // Listed by `claude_code` (claude-code://options).
  unlisted: [...Object.keys(flatOptions), ...Object.keys(PromptOptions.shape), "advanced"],
  forDiskResume: ["resumeToken", "diskResumeConfig"],
  advertised: {
    // Described by `claude_code`.
    prompt: { type: "string" },
    resumeSessionAt: { type: "string", description: "message to go back to. Default: none" },
    idempotencyKey: { type: "string", description: "Default: none" },
    attachments: { ...ADVERTISED_ATTACHMENTS, description: "Default: []" },
    diskResumeConfig: { type: "object", properties: {}, description: "its options. Default: {}" },
  },
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  scope: reply.scope,
  async handle(args, call, deps) {
    const waitMs = waitWithin(args.waitMs, 0, deps.limits);
    const begun = SentPrompt.parse(previousRound(NAME, call)?.work ?? (await send(args, call, deps)));
    return answerTurn(begun, { tool: NAME, waitMs }, { call, deps });
  },
});

async function send(args: Input, call: ToolCall, deps: ToolDeps): Promise<SentPrompt> {
  const { advanced = {}, endWithClient: beside, verify } = args;
  const flat = { ...(beside !== undefined && { endWithClient: beside }), ...(verify && { verify }) };
  const ofPrompt = mergeOptions(flat, advanced, "advanced");
  const bind = endingWithClient(ofPrompt.endWithClient ?? false, call, deps);
  const { profile } = diskOptions(args);
  const request = { ...promptOf(args, ofPrompt, call), ...(profile !== undefined && { profile }) };
  const begun = await begin(args, request, call, deps);
  await bind(begun);
  return begun;
}

async function begin(args: Input, request: PromptRequest, call: ToolCall, deps: ToolDeps): Promise<SentPrompt> {
  const { forkSession: isFork = false, sessionId } = args;
  const acting = actingCaller(call, deps);
  if (isFork && args.whenBusy !== undefined) {
    throw invalidArgument("whenBusy", "cannot be combined with forkSession: no turn runs in a new fork.");
  }
  const given = diskOptions(args);
  const unused = warnUnused(args, call, deps);
  try {
    if (isFork) {
      const { withheld, ...begun } = await fork.run(acting, { sessionId, request });
      return { ...begun, warnings: [...unused, ...withheld] };
    }
    const { cursor } = await reply.run(acting, { sessionId, request });
    return { sessionId, cursor, warnings: unused };
  } catch (error) {
    if (!isUnknown(error, sessionId)) throw error;
  }
  checkDiskResume(deps.diskResume, call.principal, { sessionId, token: args.resumeToken });
  const { options: chosen, warnings } = correctToolNames(given);
  const { withheld, ...begun } = await adopt.run(acting, { sessionId, fork: isFork, options: chosen, prompt: request });
  return { ...begun, warnings: [...warnings, ...thinkingWarnings(chosen), ...withheld] };
}

/** True if the store has no session `sessionId` of this caller. Claude Code may still have a transcript. */
function isUnknown(error: unknown, sessionId: string): boolean {
  return error instanceof AppError && error.code === "SESSION_NOT_FOUND" && error.sessionId === sessionId;
}

function promptOf(
  args: Input,
  { endWithClient = false, verify }: z.infer<typeof PromptOptions>,
  call: ToolCall,
): PromptRequest {
  const { attachments, idempotencyKey, permissionRequestTimeoutMs: requestTimeoutMs, timeout: turnMs, whenBusy } = args;
  const limits = {
    ...approvalLimits(call),
    ...(endWithClient && { endWithClient }),
    ...(turnMs !== undefined && { turnMs }),
    ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
  };
  return {
    text: args.prompt,
    via: NAME,
    ...(attachments && { attachments }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(whenBusy && { whenBusy }),
    limits,
    ...(verify && { verify: verifyOf(verify) }),
    ...(args.resumeSessionAt !== undefined && { resumeAt: args.resumeSessionAt }),
  };
}

/** Merges the options in `diskResumeConfig` with those beside `prompt`. */
function diskOptions(args: Input): z.infer<typeof DiskOptions> {
  const { diskResumeConfig: nested = {} } = args;
  const beside = Object.fromEntries(Object.entries(args).filter(([name]) => Object.hasOwn(flatOptions, name)));
  return DiskOptions.parse(mergeOptions(beside, nested, "diskResumeConfig"));
}

/** Warns of options without effect on a session in the store: the session keeps its own. */
function warnUnused({ resumeToken: token, sessionId, ...args }: Input, call: ToolCall, deps: ToolDeps): string[] {
  const isUnused = (name: string) => Object.hasOwn(flatOptions, name) && name !== "profile";
  const names = Object.keys(args).filter((name) => name === "diskResumeConfig" || isUnused(name));
  const why = "not used, because the session is known here and keeps the options that it was started with";
  const advice = "Change them with claude_code_session (set_model, set_permission_mode), or start a new session.";
  const isWrong = token !== undefined && isWrongToken(deps.diskResume, call.principal, { sessionId, token });
  return [
    ...(names.length > 0 ? [`${names.join(", ")}: ${why}. ${advice}`] : []),
    ...(isWrong
      ? ["resumeToken: does not match this session. It was ignored, because the session is known here."]
      : []),
  ];
}
