import { CALLER } from "../domain/approvals/answer-source.ts";
import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import type { BackgroundTask, StoredEvent } from "../domain/event.ts";
import type { PermissionRequest } from "../domain/permission.ts";
import type { JsonObject } from "../domain/json.ts";
import { briefOutput } from "./brief.ts";
import { presentMessage } from "./message.ts";
import { oneLine } from "./size.ts";
import { summaryOf } from "./summary.ts";
import { verificationNotice, verifyingLine } from "./verification.ts";

/** Shows events of the log to callers. Cursors skip hidden events silently. */

export type EventType = "output" | "progress" | "permission_request" | "permission_result" | "result" | "error";

export interface ShownEvent {
  readonly id: number;
  readonly type: EventType;
  readonly data: JsonObject;
  /** Left out in mode `minimal`, because a model following the work has no use for it. */
  readonly timestamp?: string;
}

/**
 * - `minimal`: everything a model needs, nothing twice.
 * - `delta_compact`: every message, shortened.
 * - `full`: messages unchanged.
 */
export type ResponseMode = "minimal" | "delta_compact" | "full";

interface Presented {
  readonly type: EventType;
  readonly data: JsonObject;
}

/**
 * Returns `undefined` for a hidden event. `turn.ended` is hidden too, because it needs Claude Code's result (`presentResult`).
 */
export function presentEvent(event: StoredEvent, mode: ResponseMode): ShownEvent | undefined {
  const presented = mode === "full" ? decideBy(FULL, event, mode) : decideBy(SHORTENED, event, mode);
  return presented && { id: event.id, ...presented, ...timeOf(event, mode) };
}

export function timeOf({ at }: Pick<StoredEvent, "at">, mode: ResponseMode): { timestamp?: string } {
  return mode === "minimal" ? {} : { timestamp: new Date(at).toISOString() };
}

type Shown = Presented | undefined;

const hidden = (): Shown => undefined;

/** Types hidden in every mode. `turn.ended` is shown by `presentResult`, together with Claude Code's result. */
const HIDDEN = {
  "session.opened": hidden,
  "session.configured": hidden,
  "session.closed": hidden,
  "prompt.queued": hidden,
  "prompt.steered": hidden,
  "turn.started": hidden,
  "turn.baseline": hidden,
  // Part of the result, as is the last `verification.ended`.
  "turn.receipt": hidden,
  "turn.ended": hidden,
  "request.passed": hidden,
  "process.started": hidden,
  "process.exited": hidden,
} as const;

type Mode = Exclude<ResponseMode, "full">;

const SHORTENED: ByEventType<Shown, [Mode]> = {
  ...HIDDEN,
  message: ({ message }, mode) => presentMessage(message, mode === "minimal" ? "brief" : "short"),
  "permission.asked": presentRequest,
  "permission.answered": presentAnswer,
  "question.asked": presentRequest,
  "question.answered": presentAnswer,
  "verification.started": presentVerifying,
  "verification.ended": ({ verification }) => ({ type: "progress", data: verificationNotice(verification) }),
  // In mode `minimal` the answer has a list of running tasks, and the call and its notification show start and end.
  "background.changed": ({ tasks }, mode) => (mode === "minimal" ? undefined : presentBackground(tasks)),
  notice: ({ kind, message }, mode) => {
    const isBrief = mode === "minimal" && kind === "denial";
    return {
      type: "progress",
      data: { notice: kind, message: isBrief ? briefOutput(message, "denied").value : message },
    };
  },
  "prompt.dropped": presentDrop,
};

/** Shows stored content under equal types. Tool results, and content without a short form, are `progress`. */
const FULL: ByEventType<Shown, ["full"]> = {
  ...HIDDEN,
  message: ({ message }) => ({ type: message["type"] === "assistant" ? "output" : "progress", data: message }),
  "permission.asked": (data) => ({ type: "permission_request", data }),
  "permission.answered": presentAnswer,
  "question.asked": (data) => ({ type: "permission_request", data }),
  "question.answered": presentAnswer,
  "verification.started": presentVerifying,
  "verification.ended": (data) => ({ type: "progress", data: { verification: data.verification } }),
  "background.changed": ({ tasks }) => presentBackground(tasks),
  notice: ({ details, kind, message }) => {
    return { type: "progress", data: { notice: kind, message, ...(details && { details }) } };
  },
  "prompt.dropped": presentDrop,
};

function presentRequest({ input, requestId, toolName }: PermissionRequest): Presented {
  return { type: "permission_request", data: { requestId, toolName, summary: summaryOf(toolName, input) } };
}

function presentVerifying(started: DataOf<"verification.started">): Presented {
  return { type: "progress", data: { message: verifyingLine(started) } };
}

function presentBackground(tasks: readonly BackgroundTask[]): Presented {
  return { type: "progress", data: { background: tasks } };
}

function presentDrop({ reason }: DataOf<"prompt.dropped">): Presented {
  return { type: "progress", data: { promptDropped: reason } };
}

type Answered = DataOf<"permission.answered">;

function presentAnswer(answered: Answered, mode: ResponseMode): Presented {
  const { requestId, toolName, behavior, by, forSession, message, remembered, rule } = answered;
  const decision = forSession === true && behavior === "allow" ? "allow_for_session" : behavior;
  // Leaves out details, because the caller has given this answer.
  if (mode === "minimal" && by === CALLER) return { type: "permission_result", data: { requestId, decision, by } };
  const data = {
    requestId,
    toolName,
    decision,
    by,
    ...(rule !== undefined && { rule }),
    ...(remembered && { remembered }),
    ...(message !== undefined && { message }),
  };
  return { type: "permission_result", data };
}

/** Describes an event on one line, for a waiting caller. */
export function headline({ type, data }: ShownEvent): string {
  const { text, tool, input, output, summary, notice, message, toolName, decision } = data;
  const line = (words: unknown[]) => oneLine(words.filter((word) => typeof word === "string").join(" "), 120);
  if (type === "permission_request") return line(["waiting for a decision:", summary]);
  if (type === "permission_result") return line([toolName, decision]);
  if (typeof tool === "string")
    return line([summaryOf(tool, typeof input === "object" && input !== null ? { ...input } : {})]);
  if (typeof data["model"] === "string") return line(["started with", data["model"]]);
  return line([text ?? output ?? message ?? notice ?? "at work"]);
}
