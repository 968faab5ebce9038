import { CALLER } from "../domain/approvals/answer-source.ts";
import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import type { BackgroundTask, StoredEvent } from "../domain/event.ts";
import type { PermissionRequest } from "../domain/permission.ts";
import type { JsonObject } from "../domain/json.ts";
import { briefOutput } from "./brief.ts";
import { presentMessage } from "./message.ts";
import { oneLine } from "./size.ts";
import { summaryOf } from "./summary.ts";

/** What a caller sees of the log. Whatever is not here is passed over by the cursor without a word. */

export type EventType = "output" | "progress" | "permission_request" | "permission_result" | "result" | "error";

export interface ShownEvent {
  readonly id: number;
  readonly type: EventType;
  readonly data: JsonObject;
  /** Not in mode minimal: a model that follows the work does nothing with it. */
  readonly timestamp?: string;
}

/** minimal: what a model needs, nothing twice. delta_compact: every message in short. full: messages as they are. */
export type ResponseMode = "minimal" | "delta_compact" | "full";

interface Presented {
  readonly type: EventType;
  readonly data: JsonObject;
}

/** The end of a turn is not told here: it needs Claude Code's result beside the event. */
export function presentEvent(event: StoredEvent, mode: ResponseMode): ShownEvent | undefined {
  const presented = mode === "full" ? decideBy(WHOLE, event, mode) : decideBy(NEWS, event, mode);
  return presented && { id: event.id, ...presented, ...timeOf(event, mode) };
}

export function timeOf({ at }: Pick<StoredEvent, "at">, mode: ResponseMode): { timestamp?: string } {
  return mode === "minimal" ? {} : { timestamp: new Date(at).toISOString() };
}

type Shown = Presented | undefined;

const hidden = (): Shown => undefined;

/** Types that no mode shows. `turn.ended` is hidden because the end of a turn needs more than its event. */
const HIDDEN = {
  "session.opened": hidden,
  "session.configured": hidden,
  "session.closed": hidden,
  "prompt.queued": hidden,
  "prompt.steered": hidden,
  "turn.started": hidden,
  "turn.ended": hidden,
  "request.passed": hidden,
  "process.started": hidden,
  "process.exited": hidden,
} as const;

type Mode = Exclude<ResponseMode, "full">;

const NEWS: ByEventType<Shown, [Mode]> = {
  ...HIDDEN,
  message: ({ message }, mode) => presentMessage(message, mode === "minimal" ? "brief" : "short"),
  "permission.asked": presentRequest,
  "permission.answered": presentAnswer,
  "question.asked": presentRequest,
  "question.answered": presentAnswer,
  // The answer itself lists what runs; that it has begun and ended is told by the call and by its notification.
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

/** The stored content under the same types; an answer of a tool and what has no short form are progress. */
const WHOLE: ByEventType<Shown, ["full"]> = {
  ...HIDDEN,
  message: ({ message }) => ({ type: message["type"] === "assistant" ? "output" : "progress", data: message }),
  "permission.asked": (data) => ({ type: "permission_request", data }),
  "permission.answered": presentAnswer,
  "question.asked": (data) => ({ type: "permission_request", data }),
  "question.answered": presentAnswer,
  "background.changed": ({ tasks }) => presentBackground(tasks),
  notice: ({ details, kind, message }) => {
    return { type: "progress", data: { notice: kind, message, ...(details && { details }) } };
  },
  "prompt.dropped": presentDrop,
};

function presentRequest({ input, requestId, toolName }: PermissionRequest): Presented {
  return { type: "permission_request", data: { requestId, toolName, summary: summaryOf(toolName, input) } };
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
  // What the caller has said itself it need not hear again.
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

/** What Claude Code does, in one line, for a waiting caller. */
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
