import type { ApproverWords, ApproverName } from "../domain/approvals/answer-source.ts";
import type { Risk } from "../domain/approvals/risk.ts";
import type { BackgroundTask, StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { AnsweredBy } from "../domain/permission.ts";
import type { Scope } from "../domain/principal.ts";
import type { ClosedReason } from "../domain/event.ts";
import type { SessionStatus } from "../domain/session.ts";
import type { TurnOutcome } from "../domain/turn.ts";

/**
 * What the console's page and its server say to each other, under /console/api; docs/console.md has the routes. Times are ms
 * since the epoch, costs USD. What is masked in the log is masked here.
 */

/** GET /me: the user, and what they may do. */
export interface Me {
  readonly principal: string;
  readonly scopes: readonly Scope[];
  readonly version: string;
  /** False if the server does not authenticate users (--no-auth). */
  readonly signsIn: boolean;
  /** All approvers by name, with their display names. */
  readonly approvers: Readonly<Record<ApproverName, ApproverWords>>;
  /** Where a new session works unless told otherwise; missing where that is gone. */
  readonly cwd?: string;
  /** What may be chosen for a new session here. */
  readonly permissionModes: readonly string[];
}

/** A session in a list. */
export interface SessionRow {
  readonly id: string;
  readonly status: SessionStatus;
  /** As it was named, or else how its first prompt begins; "" before there is one. */
  readonly title: string;
  readonly cwd: string;
  readonly model?: string;
  readonly permissionMode: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Of the model, over all prompts. */
  readonly turns: number;
  readonly costUsd: number;
  /** Since when a turn runs. */
  readonly turnStartedAt?: number;
  readonly lastOutcome?: TurnOutcome;
  /** Whom its open requests are with, each once. */
  readonly waitsFor: readonly ApproverName[];
  readonly requests: number;
  /** Prompts that wait, and how many of these are held until they are released or dropped. */
  readonly queued: number;
  readonly held: number;
  readonly background: number;
  /** How many sessions wait for a slot for their Claude Code before this one; missing where it has one or needs none. */
  readonly waitingBefore?: number;
  readonly closed?: { readonly reason: ClosedReason; readonly by: string; readonly at: number };
  readonly lastEventId: number;
  /** Why what is stored of it cannot be read, and what to do; its status is `error` then. */
  readonly unreadable?: string;
}

/** GET /sessions?status=&text=&cwd=&limit=&before= (status may be repeated). The newest first. */
export interface SessionList {
  readonly sessions: readonly SessionRow[];
  /** What the next page is asked for with, as `before`. */
  readonly next?: string;
}

/** GET /sessions/{id} */
export interface SessionDetail extends SessionRow {
  readonly tasks: readonly BackgroundTask[];
  /** The prompts that wait; their texts stand in the events. */
  readonly queue: readonly { readonly promptId: string; readonly eventId: number; readonly held: boolean }[];
  /** Answers that hold until it ends: POST revoke forgets one. */
  readonly remembered: readonly {
    readonly rule: string;
    readonly level: string;
    readonly by: string;
    readonly at: number;
  }[];
  /** File checkpoints are kept: it can be rewound. */
  readonly canRewind: boolean;
  readonly maxTurns?: number;
  readonly maxBudgetUsd?: number;
}

/**
 * GET /sessions/{id}/events?from=N&limit=M (ids from N on) or ?before=N&limit=M (the last M ids before N; without N the end).
 * In order of ids, which count from 1 without a gap.
 */
export interface EventPage {
  readonly events: readonly ShownEvent[];
  /** The newest id that there is. */
  readonly lastEventId: number;
}

/** An event whose longest texts are cut; GET /sessions/{id}/events/{eventId} has all of it. */
export type ShownEvent = StoredEvent & { readonly cut?: true };

/** Open requests of Claude Code. */
export interface PendingRequest {
  readonly sessionId: string;
  readonly title: string;
  readonly cwd: string;
  readonly requestId: string;
  readonly eventId: number;
  readonly type: "permission" | "question" | "plan";
  readonly toolName: string;
  /** Whole. A question's is {questions: [{question, header, multiSelect, options: [{label, description}]}]}, a plan's {plan}. */
  readonly input: JsonObject;
  readonly risk?: Risk;
  readonly decisionReason?: string;
  readonly blockedPath?: string;
  /** A rule that denies and that it cannot be checked against, with the reason. */
  readonly unchecked?: string;
  /** A subagent asks. */
  readonly agentId?: string;
  /** What it was sent to do, where the log says so. */
  readonly agent?: AskingAgent;
  /** The rules by which "allow for the session" would be remembered; [] where it cannot be. */
  readonly remember: readonly string[];
  /** Approvers of the session, in order; without `console` this page can only look. */
  readonly approvals: readonly ApproverName[];
  readonly approver: ApproverName;
  readonly approverDeadline: number;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** The task of a subagent, as it was named, and the event in which it was sent. */
export interface AskingAgent {
  readonly description: string;
  readonly eventId: number;
}

/** GET /requests */
export interface RequestList {
  readonly open: readonly PendingRequest[];
  /** What was decided last, the newest first. */
  readonly decided: readonly Decided[];
}

export interface Decided {
  readonly sessionId: string;
  readonly title: string;
  readonly requestId: string;
  /** Where in its log it stands. */
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
  /** With deny: what Claude Code is told. */
  readonly message?: string;
  /** With allow of a permission request or a plan: what is run instead. */
  readonly updatedInput?: JsonObject;
  /** With allow of a question: by the question's text a label, several, or a text of one's own. */
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
  /** The same key starts no second session. */
  readonly idempotencyKey?: string;
}

/** POST /sessions/{id}/reply; answered with `{ ok: true }`, as are all others below. */
export interface ReplyBody {
  readonly prompt: string;
  /** While a turn runs: wait behind it, or join it. Default: reject. */
  readonly whenBusy?: "reject" | "queue" | "steer";
  readonly idempotencyKey?: string;
}

type Nothing = Readonly<Record<string, never>>;

/** POST /sessions/{id}/{action} with a JSON object; the fields of each. */
export interface ActionBodies {
  interrupt: Nothing;
  cancel: { readonly reason?: string };
  rename: { readonly title: string };
  delete: Nothing;
  "release-queue": Nothing;
  "drop-queue": Nothing;
  /** Without a rule all of them. */
  revoke: { readonly rule?: string };
  /** Its time to be answered in is extended. */
  "more-time": { readonly requestId: string };
  /** Answered with Rewound; `dryRun` changes nothing. */
  rewind: { readonly promptId: string; readonly dryRun: boolean };
}

export interface Rewound {
  readonly canRewind: boolean;
  readonly filesChanged?: readonly string[];
  readonly insertions?: number;
  readonly deletions?: number;
  readonly error?: string;
}

/** What is refused, with its HTTP status: 400 invalid_request, 401, 403, 404, 409 conflict or already_answered, 429, 503. */
export interface Problem {
  readonly error: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}

/**
 * GET /live?session={id}&from={eventId}: a stream of server-sent events, each with JSON. Without `session` the first two kinds
 * alone. `from` is the id after the last event that is known; each `log` has its event's id, so that nothing is missed or doubled.
 */
export interface LiveEvents {
  /** Sessions that have changed: at first all that changed in the last moments before. */
  sessions: readonly SessionRow[];
  /** All that is open now, whenever it changes, and at first. */
  requests: readonly PendingRequest[];
  /** The followed session: an event of its log. */
  log: ShownEvent;
  /** The followed session: what is true of it now, when it changes, and at first. */
  session: SessionDetail;
  /** The followed session: all that is being written just now; "" when it has been said. */
  partial: { readonly text: string };
  /** The followed session is not there any more. */
  gone: { readonly sessionId: string };
  /** The server is about to stop: ask again in a moment. */
  bye: Nothing;
}

/** GET /usage?since=ms&zone=Europe/Berlin: what has happened since then, by days of that zone. */
export interface Usage {
  readonly since: number;
  readonly totals: Amounts;
  /** In order; days without anything are left out. */
  readonly days: readonly (Amounts & {
    /** 2026-01-31 */
    readonly day: string;
    readonly costByModel: Readonly<Record<string, number>>;
  })[];
  /** The dearest first. */
  readonly models: readonly { readonly model: string; readonly costUsd: number }[];
  readonly directories: readonly (Amounts & { readonly cwd: string; readonly sessions: number })[];
}

export interface Amounts {
  readonly turns: number;
  readonly failed: number;
  readonly costUsd: number;
  readonly tokens: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheCreation: number;
  };
  /** Duration of turns that have ended, ms; `workedMs`: without the time in which one of their requests was open. */
  readonly durationMs: number;
  readonly workedMs: number;
  /** With a request open, ms: also of turns that run. */
  readonly waitedMs: number;
}
