import { z } from "zod";
import type { TurnEnded } from "../domain/event.ts";
import { JsonObject } from "../domain/json.ts";
import type { Receipt } from "../domain/receipt.ts";
import type { SessionState } from "../domain/session.ts";
import { limitFields } from "../domain/standstill.ts";
import type { FailureCategory } from "../domain/turn.ts";
import { UNREADABLE } from "../domain/unreadable.ts";
import { roundUsd, tokensOf } from "../domain/usage.ts";
import type { Verification } from "../domain/verification.ts";
import { briefInput } from "./brief.ts";
import type { ListForm } from "./event-list.ts";
import { minimalReceipt } from "./receipt.ts";
import { briefVerification } from "./verification.ts";

/** Fields to drop first if a result is too large. The text is cut before any field is dropped. */
export const EXPENDABLE_OF_RESULT = ["modelUsage", "usage", "permissionDenials", "structuredOutput"];

/** Fields of Claude Code's result message passed on to callers. */
const ResultMessage = z.object({
  result: z.string().catch(""),
  stop_reason: z.string().optional().catch(undefined),
  structured_output: z.unknown().optional(),
  usage: JsonObject.optional().catch(undefined),
  modelUsage: JsonObject.optional().catch(undefined),
  permission_denials: z.array(JsonObject).optional().catch(undefined),
});

/** Receipt and verification of a turn, both from the server itself. */
export interface TurnEvidence {
  readonly receipt?: Receipt;
  readonly verification?: Verification;
}

/**
 * Presents the end of a turn with the field names of the wire. `message` is Claude Code's result message, if any; the engine's
 * own message follows its text.
 */
export function presentResult(
  sessionId: string,
  ended: TurnEnded,
  message: JsonObject,
  { receipt, verification }: TurnEvidence = {},
): JsonObject {
  const own = ResultMessage.parse(message);
  const texts = [own.result, ended.message ?? ""].filter((text) => text !== "");
  return defined({
    sessionId,
    result: texts.join("\n\n"),
    isError: ended.isError,
    receipt: receipt && minimalReceipt(receipt),
    verification,
    durationMs: ended.durationMs,
    durationApiMs: ended.durationApiMs,
    numTurns: ended.numTurns,
    totalCostUsd: roundUsd(ended.costUsd),
    sessionTotalTurns: ended.sessionTurns,
    sessionTotalCostUsd: roundUsd(ended.sessionCostUsd),
    errorSubtype: ended.errorSubtype,
    category: ended.category,
    ...limitFields(ended.limit),
    ...adviceOn(ended),
    code: ended.code,
    warnings: ended.warnings,
    stopReason: own.stop_reason,
    structuredOutput: own.structured_output,
    usage: own.usage,
    modelUsage: own.modelUsage,
    permissionDenials: own.permission_denials?.length === 0 ? undefined : own.permission_denials,
  });
}

/** Presents a turn that cannot be read. Duration and cost are unknown, and counted as 0. */
export function presentUnreadable(sessionId: string, { totals }: SessionState, message: string): JsonObject {
  const failure = { turnId: "", outcome: "failed", isError: true, errorSubtype: UNREADABLE, message } as const;
  const counts = { durationMs: 0, durationApiMs: 0, numTurns: 0, costUsd: 0 };
  const session = { sessionTurns: totals.turns, sessionCostUsd: totals.costUsd };
  return presentResult(sessionId, { ...failure, ...counts, ...session }, {});
}

/** Advice for a failed turn. `retryable` is true if the prompt may work on a second try. */
interface Advice {
  readonly retryable: boolean;
  readonly advice: string;
}

function adviceOn({ category, errorSubtype = "" }: TurnEnded): Advice | undefined {
  return category && (BY_SUBTYPE.get(errorSubtype) ?? ADVICE[category]);
}

const ADVICE: Readonly<Record<FailureCategory, Advice>> = {
  access: {
    retryable: false,
    advice:
      "Log in to Claude Code, or give the server a key with access (`claude-agents-mcp doctor` names the command), then reply.",
  },
  billing: { retryable: false, advice: "Fix the billing of the account, then reply." },
  limit: {
    retryable: true,
    advice: "Reply to continue: limits apply to each prompt anew. A new session can have higher ones.",
  },
  overloaded: { retryable: true, advice: "Wait a minute, then reply." },
  request: {
    retryable: false,
    advice: "Change the prompt or the attachments, or the model (claude_code_session, set_model), then reply.",
  },
  connection: { retryable: true, advice: "Check the network of the server, then reply." },
  configuration: {
    retryable: false,
    advice:
      "Fix what the message names, then reply. Options of a session cannot be changed: start a new one without them.",
  },
  unknown: { retryable: true, advice: "Reply to try again; read the events for what was done." },
};

const NO_STRUCTURED_OUTPUT = {
  retryable: true,
  advice: "Reply and ask for the structured output once more, or start a new session with a simpler schema.",
};

const FULL = {
  retryable: false,
  advice:
    "If the conversation is too long, reply with /compact, then with the prompt; else make the prompt shorter. Or start a new session.",
};

/** Advice for a turn that was interrupted for the operator's reserve. */
const HELD_BACK = {
  retryable: true,
  advice: "Reply to go on once the window has reset (claude_code_session, usage), or ask the operator for more.",
};

/** Advice by error subtype; has precedence over the advice for the category. */
const BY_SUBTYPE: ReadonlyMap<string, Advice> = new Map([
  [
    "usage_limit",
    {
      retryable: true,
      advice:
        "After the reset, send the refused request again (claude_code_session, continue), or reply. A session started with onLimit wait goes on by itself.",
    },
  ],
  ["plan_reserve", HELD_BACK],
  ["overage", HELD_BACK],
  [
    "budget",
    {
      retryable: false,
      advice: "Reply on another day, or ask the operator for a larger budget (claude_code_session, usage).",
    },
  ],
  ["prompt_blocked", { retryable: false, advice: "Change the prompt as the hook asks, or the hook, then reply." }],
  ["hook_stopped", { retryable: false, advice: "Change what the hook objects to, or the hook, then reply." }],
  ["command_failed", { retryable: false, advice: "Fix what the message names, or reply with another prompt." }],
  ["structured_output_missing", NO_STRUCTURED_OUTPUT],
  ["error_max_structured_output_retries", NO_STRUCTURED_OUTPUT],
  ["prompt_too_long", FULL],
  ["blocking_limit", FULL],
  ["rapid_refill_breaker", FULL],
  [
    "verification_failed",
    {
      retryable: true,
      advice:
        "Read the output of the last command in verification, then reply with what to mend, or run the commands again (claude_code_session, verify).",
    },
  ],
  [
    "unknown_agent",
    {
      retryable: false,
      advice: "Reply once there is such an agent, or start a new session with one that the message names.",
    },
  ],
  [
    "start_failed",
    {
      retryable: true,
      advice:
        "Reply to try again. If it fails again, fix what the message names; options cannot be changed: start a new session without them.",
    },
  ],
  [
    "init_timeout",
    {
      retryable: true,
      advice: "Start a new session with a larger sessionInitTimeoutMs.",
    },
  ],
  [
    "transcript_missing",
    { retryable: false, advice: "Start a new session, with everything that it must know in the prompt." },
  ],
]);

/** Returns "error" for a failed or lost turn. A turn ended by a caller still has a result. */
export function typeOfEnd({ outcome }: TurnEnded): "result" | "error" {
  return outcome === "failed" || outcome === "lost" ? "error" : "result";
}

/** Reduces a result to the fields in `include`. */
export function selectFields(result: JsonObject, { include, mode }: ListForm): JsonObject {
  const { usage, modelUsage, structuredOutput, ...rest } = withBriefDenials(result);
  const isShort = mode === "minimal" && include.usage !== true;
  return defined({
    ...(isShort ? withoutCounts(rest) : rest),
    ...(mode === "minimal" && briefVerification(rest)),
    structuredOutput: include.structuredOutput ? structuredOutput : undefined,
    usage: isShort && include.usage === "short" ? shortUsage(result) : include.usage === true ? usage : undefined,
    modelUsage: include.modelUsage ? modelUsage : undefined,
  });
}

/** Reduces a result like a poll in mode `minimal` without options. */
export function shortResult(result: JsonObject): JsonObject {
  const { usage: _, modelUsage: __, ...rest } = withBriefDenials(result);
  return defined({ ...withoutCounts(rest), ...briefVerification(rest), usage: shortUsage(result) });
}

const Denials = z.array(z.looseObject({ tool_name: z.string(), tool_input: JsonObject }));

/** Shortens the inputs of denied calls, because each poll repeats the result. The request or the call has the full input. */
function withBriefDenials(result: JsonObject): JsonObject {
  const denials = Denials.safeParse(result["permissionDenials"]);
  if (!denials.success) return result;
  const permissionDenials = denials.data.map(({ tool_input: input, ...denial }) => {
    const { cut, value } = briefInput(denial.tool_name, input);
    return { ...denial, tool_input: value, ...(cut && { inputCut: true }) };
  });
  return { ...result, permissionDenials };
}

/** Fields repeated elsewhere: the answer names the session, and the short usage has the cost. */
const REPEATED_FIELDS = ["sessionId", "durationApiMs", "totalCostUsd", "sessionTotalCostUsd"];

function withoutCounts({ stopReason, ...result }: JsonObject): JsonObject {
  const kept = Object.entries(result).filter(([key]) => !REPEATED_FIELDS.includes(key));
  // `end_turn` is the normal end.
  return { ...Object.fromEntries(kept), stopReason: stopReason === "end_turn" ? undefined : stopReason };
}

/** Returns cost and tokens of a turn. `inputTokens` includes cached tokens. */
function shortUsage({ totalCostUsd: costUsd, usage }: JsonObject): JsonObject {
  const { cache_creation, cache_read, input, output } = tokensOf(usage);
  return { costUsd, inputTokens: input + cache_read + cache_creation, outputTokens: output };
}

/** Replaces a text that is repeated in the result of the answer. */
export const SEE_RESULT = "(see result)";

/** Shortens a result shown in full elsewhere in the answer. */
export function referToResult(result: JsonObject): JsonObject {
  const { result: text, ...rest } = result;
  const said = typeof text === "string" && text.length > SEE_RESULT.length ? SEE_RESULT : text;
  const left = [...EXPENDABLE_OF_RESULT, "receipt", "verification"];
  const kept = Object.entries(rest).filter(([key]) => !left.includes(key));
  return { result: said, ...Object.fromEntries(kept) };
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
