import type { ApproverWords, ApproverName } from "../domain/approvals/answer-source.ts";
import type { Risk } from "../domain/approvals/risk.ts";
import type { BackgroundTask, StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { AnsweredBy } from "../domain/permission.ts";
import type { PlanLimit } from "../domain/plan.ts";
import type { Scope } from "../domain/principal.ts";
import type { ClosedReason } from "../domain/event.ts";
import type { SessionStatus, SessionWait } from "../domain/session.ts";
import type { TurnOutcome } from "../domain/turn.ts";
import type { OnLimit, Priority } from "../domain/waiting.ts";

/**
 * Data exchanged between the console's page and its server below `/console/api`; docs/console.md lists the routes. Times are ms
 * since the epoch, costs USD. Values masked in the log are masked here too.
 */

/** GET /me: the user, with scopes and choices. */
export interface Me {
  readonly principal: string;
  readonly scopes: readonly Scope[];
  readonly version: string;
  /** False if the server does not authenticate users (`--no-auth`). */
  readonly signsIn: boolean;
  /** Display names of all approvers. */
  readonly approvers: Readonly<Record<ApproverName, ApproverWords>>;
  /** Default folder of a new session; missing if there is none. */
  readonly cwd?: string;
  /** Profiles that a new session may begin with. */
  readonly profiles: readonly { readonly name: string; readonly description?: string }[];
  /** Permission modes allowed for a new session. */
  readonly permissionModes: readonly string[];
}

/** Entry of a list of sessions. */
export interface SessionRow {
  readonly id: string;
  readonly status: SessionStatus;
  /** Given name, otherwise the beginning of the first prompt; "" before the first prompt. */
  readonly title: string;
  readonly cwd: string;
  readonly model?: string;
  readonly permissionMode: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Turns of the model over all prompts. */
  readonly turns: number;
  readonly costUsd: number;
  /** Start of the running turn. */
  readonly turnStartedAt?: number;
  readonly lastOutcome?: TurnOutcome;
  /** Approvers who hold the open requests, without duplicates. */
  readonly waitsFor: readonly ApproverName[];
  readonly requests: number;
  /** Number of waiting prompts, `held` included: a held prompt waits until released or dropped. */
  readonly queued: number;
  readonly held: number;
  readonly background: number;
  /** Reason why the work stands still. `ahead`: number of sessions before this one in the queue for a slot. */
  readonly waiting?: SessionWait & { readonly ahead?: number };
  readonly closed?: { readonly reason: ClosedReason; readonly by: string; readonly at: number };
  readonly lastEventId: number;
  /** Reason why the stored session cannot be read, with a remedy; `status` is `error` then. */
  readonly unreadable?: string;
}

/** GET /sessions?status=&text=&cwd=&limit=&before= (`status` may be repeated). Newest first. */
export interface SessionList {
  readonly sessions: readonly SessionRow[];
  /** Value of `before` for the next page. */
  readonly next?: string;
}

/** GET /sessions/{id} */
export interface SessionDetail extends SessionRow {
  readonly tasks: readonly BackgroundTask[];
  /** Waiting prompts; the events with `eventId` have their texts. */
  readonly queue: readonly { readonly promptId: string; readonly eventId: number; readonly held: boolean }[];
  /** Remembered answers, valid until the session ends; `POST revoke` removes an entry. */
  readonly remembered: readonly {
    readonly rule: string;
    readonly level: string;
    readonly by: string;
    readonly at: number;
  }[];
  /** True if the session keeps file checkpoints. */
  readonly canRewind: boolean;
  readonly maxTurns?: number;
  readonly maxBudgetUsd?: number;
  readonly onLimit?: OnLimit;
  readonly priority?: Priority;
  readonly profile?: string;
  /** Node that runs the session; missing on a store of one machine, and while none does. */
  readonly node?: string;
  /** Nodes that may run the session, in words. */
  readonly place?: string;
  /** Limit at which the API refused the last request; `POST continue` sends the request again once `resetsAt` has passed. */
  readonly refused?: PlanLimit;
}

/**
 * GET /sessions/{id}/events?from=N&limit=M (ids from N on) or ?before=N&limit=M (the last M ids before N; without N the end).
 * Sorted by id; ids count from 1 without gaps.
 */
export interface EventPage {
  readonly events: readonly ShownEvent[];
  /** Id of the newest event. */
  readonly lastEventId: number;
}

/** Event with long texts cut; GET /sessions/{id}/events/{eventId} returns the whole event. */
export type ShownEvent = StoredEvent & { readonly cut?: true };

/** Open request of Claude Code. */
export interface PendingRequest {
  readonly sessionId: string;
  readonly title: string;
  readonly cwd: string;
  readonly requestId: string;
  readonly eventId: number;
  readonly type: "permission" | "question" | "plan";
  readonly toolName: string;
  /**
   * Complete input. For a question {questions: [{question, header, multiSelect, options: [{label, description}]}]}, for a plan
   * {plan}.
   */
  readonly input: JsonObject;
  readonly risk?: Risk;
  readonly decisionReason?: string;
  readonly blockedPath?: string;
  /** Deny rule that cannot be checked against `input`, with the reason. */
  readonly unchecked?: string;
  /** Set if a subagent asks: id of the subagent. */
  readonly agentId?: string;
  /** Task of the subagent; missing if the log does not name the task. */
  readonly agent?: AskingAgent;
  /** Rules that `allow_for_session` would remember; [] if the request cannot be remembered. */
  readonly remember: readonly string[];
  /** Approvers of the session, in order. Without `console` the page cannot answer. */
  readonly approvals: readonly ApproverName[];
  readonly approver: ApproverName;
  readonly approverDeadline: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Task of a subagent: `description` and event of the call that started the subagent. */
export interface AskingAgent {
  readonly description: string;
  readonly eventId: number;
}

/** GET /links/{id}, for the page of one request. */
export interface LinkedRequest {
  readonly request: PendingRequest;
  readonly approvers: Me["approvers"];
}

/** GET /requests */
export interface RequestList {
  readonly open: readonly PendingRequest[];
  /** Latest decisions, newest first. */
  readonly decided: readonly Decision[];
}

export interface Decision {
  readonly sessionId: string;
  readonly title: string;
  readonly requestId: string;
  /** Id of the event with the decision. */
  readonly eventId?: number;
  readonly toolName: string;
  readonly behavior: "allow" | "deny";
  readonly by: AnsweredBy;
  readonly at: number;
  readonly message?: string;
  readonly rule?: string;
  readonly remembered?: readonly string[];
}

/** POST /sessions/{id}/requests/{requestId} */
export interface AnswerBody {
  readonly decision: "allow" | "deny" | "allow_for_session";
  /** Text for Claude Code, with `deny`. */
  readonly message?: string;
  /** Input to run in place of the original, with `allow` of a permission request or a plan. */
  readonly updatedInput?: JsonObject;
  /** Answers by text of the question, with `allow` of a question: a label, several labels, or free text. */
  readonly answers?: Readonly<Record<string, string | readonly string[]>>;
}

/** POST /sessions; answered with `{ sessionId, warnings }`. */
export interface StartBody {
  readonly prompt: string;
  readonly cwd?: string;
  readonly model?: string;
  readonly permissionMode?: string;
  readonly maxTurns?: number;
  readonly maxBudgetUsd?: number;
  /** Default: the operator's. */
  readonly onLimit?: OnLimit;
  readonly priority?: Priority;
  readonly profile?: string;
  /** Starts no second session if the key is repeated. */
  readonly idempotencyKey?: string;
}

/** POST /sessions/{id}/reply; answered with `{ ok: true }`, as are all actions below. */
export interface ReplyBody {
  readonly prompt: string;
  /** Behavior while a turn runs: `queue` waits behind the turn, `steer` joins the turn. Default: `reject`. */
  readonly whenBusy?: "reject" | "queue" | "steer";
  readonly idempotencyKey?: string;
}

type NoFields = Readonly<Record<string, never>>;

/** POST /sessions/{id}/{action} with a JSON object; fields by action. */
export interface ActionBodies {
  interrupt: NoFields;
  continue: NoFields;
  cancel: { readonly reason?: string };
  rename: { readonly title: string };
  delete: NoFields;
  "release-queue": NoFields;
  "drop-queue": NoFields;
  /** Removes all remembered answers if `rule` is missing. */
  revoke: { readonly rule?: string };
  /** Extends the time to answer the request. */
  "more-time": { readonly requestId: string };
  /** Answered with `RewindResult`; `dryRun` changes nothing. */
  rewind: { readonly promptId: string; readonly dryRun: boolean };
}

export interface RewindResult {
  readonly canRewind: boolean;
  readonly filesChanged?: readonly string[];
  readonly insertions?: number;
  readonly deletions?: number;
  readonly error?: string;
}

/** Body of a refusal. Statuses: 400 invalid_request, 401, 403, 404, 409 conflict or already_answered, 429, 503. */
export interface Problem {
  readonly error: string;
  /** Reason, with a remedy. */
  readonly message: string;
}

/**
 * GET /live?session={id}&from={eventId}: server-sent events with JSON. Without `session`, only `sessions` and `requests` are
 * sent. `from` is the id after the last known event; each `log` carries the id of its event, so that no event is missed or
 * doubled.
 */
export interface LiveEvents {
  /** Changed sessions; the first event covers the last moments before the connection. */
  sessions: readonly SessionRow[];
  /** All open requests, at first and after each change. */
  requests: readonly PendingRequest[];
  /** Event in the log of the followed session. */
  log: ShownEvent;
  /** State of the followed session, at first and after each change. */
  session: SessionDetail;
  /** Unfinished text of the followed session; "" once the text is in the log. */
  partial: { readonly text: string };
  /** Sent when the followed session no longer exists. */
  gone: { readonly sessionId: string };
  /** Sent when the server is about to stop; the page reconnects. */
  bye: NoFields;
}
