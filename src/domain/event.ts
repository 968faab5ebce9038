import { z } from "zod";
import { JsonObject } from "./json.ts";
import { PassReason, ApproverName } from "./approvals/answer-source.ts";
import { AnsweredBy, PermissionRequest, PermissionUpdate } from "./permission.ts";
import { PlanLimit } from "./plan.ts";
import { Attachment } from "./prompt.ts";
import { Receipt, Snapshot } from "./receipt.ts";
import { FailureCategory, TurnOutcome } from "./turn.ts";
import { Verification, Verify } from "./verification.ts";

/**
 * Events of a session, as stored in the log. Ids count from 1 without gaps; times are ms since the epoch. Types are only ever
 * added: an older server keeps an event of unknown type.
 */

/** Replaces each secret in a stored text. */
export const MASKED = "[masked]";

const event = <T extends string, D extends z.ZodType>(type: T, data: D) => z.object({ type: z.literal(type), data });

export const ClosedReason = z.enum(["cancelled", "closed", "expired"]);
export type ClosedReason = z.infer<typeof ClosedReason>;

/**
 * Beginning of a turn: by a prompt, by Claude Code itself, or by a caller who wants commands of a verification to run.
 */
export const TurnOrigin = z.enum(["prompt", "self", "verify"]);

export const BackgroundTask = z.object({ id: z.string(), type: z.string(), description: z.string() });
export type BackgroundTask = z.infer<typeof BackgroundTask>;

export const NoticeKind = z.enum([
  "retry",
  "fallback",
  "compaction",
  "denial",
  "rate_limit",
  "data_loss",
  "untrusted_directory",
  "rewind",
  "waiting",
  "warning",
  "revoked",
  "unattended",
  "owner.changed",
]);
export type NoticeKind = z.infer<typeof NoticeKind>;

const RequestAnswer = z.object({
  requestId: z.string(),
  toolName: z.string(),
  behavior: z.enum(["allow", "deny"]),
  by: AnsweredBy,
  message: z.string().exactOptional(),
  forSession: z.boolean().exactOptional(),
  /** Text of the rule, if a rule answered. */
  rule: z.string().exactOptional(),
  /** Rules by which the answer is remembered until the session ends. */
  remembered: z.array(z.string()).exactOptional(),
  /** Further content of an allow, kept so that the allow can be repeated. */
  updatedInput: JsonObject.exactOptional(),
  updatedPermissions: z.array(PermissionUpdate).exactOptional(),
});

export const TurnEnded = z.object({
  turnId: z.string(),
  outcome: TurnOutcome,
  isError: z.boolean(),
  /**
   * Reason for the outcome, in words of this server or of Claude Code: `error_max_turns`, `interrupted`, `lost`, `time_limit`,
   * ...
   */
  errorSubtype: z.string().exactOptional(),
  category: FailureCategory.exactOptional(),
  code: z.string().exactOptional(),
  /** Limit of the plan that has ended the turn, or holds it back. */
  limit: PlanLimit.exactOptional(),
  /** Text for the reader if Claude Code left none. */
  message: z.string().exactOptional(),
  /** Notes on the turn for the caller, besides the result. A sentence each. */
  warnings: z.array(z.string()).exactOptional(),
  /** Event with Claude Code's last result that has a text. Text, usage and structured output are read from there. */
  resultEventId: z.number().int().exactOptional(),
  /** Event with the receipt; absent if the turn ended at once, before the server could look. */
  receiptEventId: z.number().int().exactOptional(),
  /** Event with the last verification of the turn. */
  verificationEventId: z.number().int().exactOptional(),
  durationMs: z.number(),
  durationApiMs: z.number(),
  numTurns: z.number(),
  costUsd: z.number(),
  sessionTurns: z.number(),
  sessionCostUsd: z.number(),
});
export type TurnEnded = z.infer<typeof TurnEnded>;

export const SessionEvent = z.discriminatedUnion("type", [
  event("session.opened", z.object({ cwd: z.string(), model: z.string().exactOptional() })),
  event(
    "session.configured",
    z.object({
      model: z.string().exactOptional(),
      permissionMode: z.string().exactOptional(),
      /** Caller who chose the values. Without `by`, Claude Code reported them. */
      by: z.string().exactOptional(),
    }),
  ),
  event("session.closed", z.object({ reason: ClosedReason, by: z.string(), message: z.string().exactOptional() })),
  event(
    "prompt.queued",
    z.object({
      promptId: z.string(),
      text: z.string(),
      attachments: z.array(Attachment).exactOptional(),
      /** Name of the tool that sent the prompt. */
      via: z.string().exactOptional(),
      /** Verification of the prompt's turn. Default: the session's. */
      verify: Verify.exactOptional(),
    }),
  ),
  /** Marks a prompt that joined the running turn. */
  event("prompt.steered", z.object({ promptId: z.string() })),
  event("prompt.dropped", z.object({ promptId: z.string(), reason: z.string() })),
  event(
    "turn.started",
    z.object({
      turnId: z.string(),
      origin: TurnOrigin,
      promptIds: z.array(z.string()),
      /** Commands of a turn of origin `verify`. Default: the session's. */
      verify: Verify.exactOptional(),
    }),
  ),
  /** State of the session's folders at the beginning of a turn. */
  event(
    "turn.baseline",
    z.object({
      turnId: z.string(),
      before: Snapshot,
      /** Number of files changed since the last receipt of the session, if known. */
      between: z.number().int().exactOptional(),
    }),
  ),
  /** The server begins to run commands. `attempt` counts from 1, `of` is the maximum. */
  event(
    "verification.started",
    z.object({ turnId: z.string(), attempt: z.number().int(), of: z.number().int(), commands: z.array(z.string()) }),
  ),
  event("verification.ended", z.object({ turnId: z.string(), verification: Verification })),
  /** `after`: state of the folders at the end of the turn. */
  event("turn.receipt", z.object({ turnId: z.string(), receipt: Receipt, after: Snapshot })),
  event("turn.ended", TurnEnded),
  event("message", z.object({ message: JsonObject })),
  event("permission.asked", PermissionRequest),
  event("permission.answered", RequestAnswer),
  event("question.asked", PermissionRequest),
  event("question.answered", RequestAnswer),
  /** Moves a request from approver `from`, who did not answer, to approver `to`. */
  event("request.passed", z.object({ requestId: z.string(), from: ApproverName, to: ApproverName, why: PassReason })),
  event("background.changed", z.object({ tasks: z.array(BackgroundTask) })),
  event("notice", z.object({ kind: NoticeKind, message: z.string(), details: JsonObject.exactOptional() })),
  event("process.started", z.object({ processId: z.string(), pid: z.number().exactOptional(), resumed: z.boolean() })),
  event(
    "process.exited",
    z.object({
      processId: z.string(),
      code: z.number().nullable(),
      signal: z.string().nullable(),
      expected: z.boolean(),
      error: z.string().exactOptional(),
    }),
  ),
]);
/** Event before it is stored. */
export type SessionEvent = z.infer<typeof SessionEvent>;
export type EventType = SessionEvent["type"];
export const EVENT_TYPES: readonly EventType[] = SessionEvent.options.map(({ shape }) => shape.type.value);

/** Event as the log returns it; `at` is ms since the epoch. */
export type StoredEvent = SessionEvent & { readonly id: number; readonly at: number };

/** Returns the request that the event opens, if any. */
export function requestOf(stored: StoredEvent | undefined): PermissionRequest | undefined {
  return stored?.type === "permission.asked" || stored?.type === "question.asked" ? stored.data : undefined;
}
