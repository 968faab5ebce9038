import { z } from "zod";
import { JsonObject } from "./json.ts";
import { Passed, ApproverName } from "./approvals/answer-source.ts";
import { AnsweredBy, PermissionRequest, PermissionUpdate } from "./permission.ts";
import { Attachment } from "./prompt.ts";
import { FailureCategory, TurnOutcome } from "./turn.ts";

/**
 * What happened in a session, as its log keeps it. Ids count from 1 without a gap; times are ms since the epoch.
 * Types are only ever added: an older server keeps a type it does not know (see `StoredEvent`).
 */

const event = <T extends string, D extends z.ZodType>(type: T, data: D) => z.object({ type: z.literal(type), data });

export const ClosedReason = z.enum(["cancelled", "closed", "expired"]);
export type ClosedReason = z.infer<typeof ClosedReason>;

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

const Answered = z.object({
  requestId: z.string(),
  toolName: z.string(),
  behavior: z.enum(["allow", "deny"]),
  by: AnsweredBy,
  message: z.string().exactOptional(),
  forSession: z.boolean().exactOptional(),
  /** Which rule, where one has answered. */
  rule: z.string().exactOptional(),
  /** The rules by which it is remembered until the session ends. */
  remembered: z.array(z.string()).exactOptional(),
  /** What else an allow said, so that it can be said once more. */
  updatedInput: JsonObject.exactOptional(),
  updatedPermissions: z.array(PermissionUpdate).exactOptional(),
});

export const TurnEnded = z.object({
  turnId: z.string(),
  outcome: TurnOutcome,
  isError: z.boolean(),
  /** Why, in one of our words or Claude Code's: error_max_turns, interrupted, lost, time_limit, ... */
  errorSubtype: z.string().exactOptional(),
  category: FailureCategory.exactOptional(),
  code: z.string().exactOptional(),
  /** What to tell a reader when Claude Code left no text of its own. */
  message: z.string().exactOptional(),
  /** Notes on the turn that a caller should know beside the result, a sentence each. */
  warnings: z.array(z.string()).exactOptional(),
  /** The event that holds Claude Code's last result with a text: text, usage and structured output stand there. */
  resultEventId: z.number().int().exactOptional(),
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
      /** Who chose it; without it Claude Code reported what it uses. */
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
      /** The tool it came through. */
      via: z.string().exactOptional(),
    }),
  ),
  /** The prompt joined the turn that runs. */
  event("prompt.steered", z.object({ promptId: z.string() })),
  event("prompt.dropped", z.object({ promptId: z.string(), reason: z.string() })),
  event(
    "turn.started",
    z.object({ turnId: z.string(), origin: z.enum(["prompt", "self"]), promptIds: z.array(z.string()) }),
  ),
  event("turn.ended", TurnEnded),
  event("message", z.object({ message: JsonObject })),
  event("permission.asked", PermissionRequest),
  event("permission.answered", Answered),
  event("question.asked", PermissionRequest),
  event("question.answered", Answered),
  /** The approver did not answer the request: the next one has it now. */
  event("request.passed", z.object({ requestId: z.string(), from: ApproverName, to: ApproverName, why: Passed })),
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
/** An event before it is stored. */
export type SessionEvent = z.infer<typeof SessionEvent>;
export type EventType = SessionEvent["type"];
export const EVENT_TYPES: readonly EventType[] = SessionEvent.options.map(({ shape }) => shape.type.value);

/** An event as the log hands it out. */
export type StoredEvent = SessionEvent & { readonly id: number; readonly at: number };

/** The request that an event opens. */
export function requestOf(stored: StoredEvent | undefined): PermissionRequest | undefined {
  return stored?.type === "permission.asked" || stored?.type === "question.asked" ? stored.data : undefined;
}
