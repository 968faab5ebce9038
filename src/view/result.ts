import { z } from "zod";
import type { TurnEnded } from "../domain/event.ts";
import { JsonObject } from "../domain/json.ts";
import type { SessionState } from "../domain/session.ts";
import type { FailureCategory } from "../domain/turn.ts";
import { UNREADABLE } from "../domain/unreadable.ts";
import { exactUsd, tokensOf } from "../domain/usage.ts";
import { briefInput } from "./brief.ts";
import type { Form } from "./event-list.ts";

/** What gives way first when a result is too large; its text is cut before any of it. */
export const EXPENDABLE_OF_RESULT = ["modelUsage", "usage", "permissionDenials", "structuredOutput"];

/** The fields of Claude Code's result message that are passed on. */
const ResultMessage = z.object({
  result: z.string().catch(""),
  stop_reason: z.string().optional().catch(undefined),
  structured_output: z.unknown().optional(),
  usage: JsonObject.optional().catch(undefined),
  modelUsage: JsonObject.optional().catch(undefined),
  permission_denials: z.array(JsonObject).optional().catch(undefined),
});

/**
 * How a turn ended, with the field names of the wire. `message` is Claude Code's own result where there is one; what
 * the engine has to say of the end stands after its text.
 */
export function presentResult(sessionId: string, ended: TurnEnded, message: JsonObject): JsonObject {
  const own = ResultMessage.parse(message);
  const texts = [own.result, ended.message ?? ""].filter((text) => text !== "");
  return defined({
    sessionId,
    result: texts.join("\n\n"),
    isError: ended.isError,
    durationMs: ended.durationMs,
    durationApiMs: ended.durationApiMs,
    numTurns: ended.numTurns,
    totalCostUsd: exactUsd(ended.costUsd),
    sessionTotalTurns: ended.sessionTurns,
    sessionTotalCostUsd: exactUsd(ended.sessionCostUsd),
    errorSubtype: ended.errorSubtype,
    category: ended.category,
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

/** The result of a turn of which nothing can be read: what it took is unknown, and counts as nothing. */
export function presentUnreadable(sessionId: string, { totals }: SessionState, message: string): JsonObject {
  const failure = { turnId: "", outcome: "failed", isError: true, errorSubtype: UNREADABLE, message } as const;
  const counts = { durationMs: 0, durationApiMs: 0, numTurns: 0, costUsd: 0 };
  const session = { sessionTurns: totals.turns, sessionCostUsd: totals.costUsd };
  return presentResult(sessionId, { ...failure, ...counts, ...session }, {});
}

/** Whether the same prompt may work when it is sent again, and what to do. */
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

/** Before the advice of the category. */
const BY_SUBTYPE: ReadonlyMap<string, Advice> = new Map([
  ["prompt_blocked", { retryable: false, advice: "Change the prompt as the hook asks, or the hook, then reply." }],
  ["hook_stopped", { retryable: false, advice: "Change what the hook objects to, or the hook, then reply." }],
  ["command_failed", { retryable: false, advice: "Fix what the message names, or reply with another prompt." }],
  ["structured_output_missing", NO_STRUCTURED_OUTPUT],
  ["error_max_structured_output_retries", NO_STRUCTURED_OUTPUT],
  ["prompt_too_long", FULL],
  ["blocking_limit", FULL],
  ["rapid_refill_breaker", FULL],
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
    { retryable: false, advice: "Start a new session, and tell it in the prompt what it must know of this one." },
  ],
]);

/** Seeds 001 and 002 report a failed turn as an error; a turn that was ended by a caller still has a result. */
export function typeOfEnd({ outcome }: TurnEnded): "result" | "error" {
  return outcome === "failed" || outcome === "lost" ? "error" : "result";
}

/** The result as the caller wants it told. */
export function wantedOf(result: JsonObject, { include, mode }: Form): JsonObject {
  const { usage, modelUsage, structuredOutput, ...rest } = withBriefDenials(result);
  const isShort = mode === "minimal" && include.usage !== true;
  return defined({
    ...(isShort ? withoutCounts(rest) : rest),
    structuredOutput: include.structuredOutput ? structuredOutput : undefined,
    usage: isShort && include.usage === "short" ? shortUsage(result) : include.usage === true ? usage : undefined,
    modelUsage: include.modelUsage ? modelUsage : undefined,
  });
}

/** What a start and a reply tell of a result, as a check does that is asked for nothing else. */
export function inShort(result: JsonObject): JsonObject {
  const { usage: _, modelUsage: __, ...rest } = withBriefDenials(result);
  return defined({ ...withoutCounts(rest), usage: shortUsage(result) });
}

const Denials = z.array(z.looseObject({ tool_name: z.string(), tool_input: JsonObject }));

/** A result is told with each poll, and an input that was denied only with its request or its call. */
function withBriefDenials(result: JsonObject): JsonObject {
  const denials = Denials.safeParse(result["permissionDenials"]);
  if (!denials.success) return result;
  const permissionDenials = denials.data.map(({ tool_input: input, ...denial }) => {
    const { cut, value } = briefInput(denial.tool_name, input);
    return { ...denial, tool_input: value, ...(cut && { inputCut: true }) };
  });
  return { ...result, permissionDenials };
}

/** The answer names the session, and the short usage has the cost. */
const SAID_ELSEWHERE = ["sessionId", "durationApiMs", "totalCostUsd", "sessionTotalCostUsd"];

function withoutCounts({ stopReason, ...result }: JsonObject): JsonObject {
  const kept = Object.entries(result).filter(([key]) => !SAID_ELSEWHERE.includes(key));
  // A turn that ended by itself needs no note.
  return { ...Object.fromEntries(kept), stopReason: stopReason === "end_turn" ? undefined : stopReason };
}

/** What a turn has cost, in money and in tokens, those among them that the API had kept. */
function shortUsage({ totalCostUsd: costUsd, usage }: JsonObject): JsonObject {
  const { cache_creation, cache_read, input, output } = tokensOf(usage);
  return { costUsd, inputTokens: input + cache_read + cache_creation, outputTokens: output };
}

/** In place of a text that stands in the result of the same answer. */
export const SEE_RESULT = "(see result)";

/** A result of which the whole stands elsewhere in the answer. */
export function briefly(result: JsonObject): JsonObject {
  const { result: text, ...rest } = result;
  const said = typeof text === "string" && text.length > SEE_RESULT.length ? SEE_RESULT : text;
  const kept = Object.entries(rest).filter(([key]) => !EXPENDABLE_OF_RESULT.includes(key));
  return { result: said, ...Object.fromEntries(kept) };
}

function defined(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
