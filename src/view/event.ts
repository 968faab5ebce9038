import { CALLER } from "../domain/approvals/answer-source.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
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
  const presented = mode === "full" ? presentWhole(event) : presentNews(event, mode);
  return presented && { id: event.id, ...presented, ...timeOf(event, mode) };
}

export function timeOf({ at }: Pick<StoredEvent, "at">, mode: ResponseMode): { timestamp?: string } {
  return mode === "minimal" ? {} : { timestamp: new Date(at).toISOString() };
}

function presentNews(event: StoredEvent, mode: Exclude<ResponseMode, "full">): Presented | undefined {
  const { data, type } = event;
  if (type === "message") return presentMessage(data.message, mode === "minimal" ? "brief" : "short");
  if (type === "permission.asked" || type === "question.asked") {
    const { requestId, toolName, input } = data;
    return { type: "permission_request", data: { requestId, toolName, summary: summaryOf(toolName, input) } };
  }
  if (type === "permission.answered" || type === "question.answered") return presentAnswer(data, mode);
  // The answer itself lists what runs; that it has begun and ended is told by the call and by its notification.
  if (type === "background.changed" && mode === "minimal") return undefined;
  if (type === "notice") return { type: "progress", data: { notice: data.kind, message: data.message } };
  return presentChange(event);
}

/** What reads the same in short and whole. */
function presentChange({ data, type }: StoredEvent): Presented | undefined {
  if (type === "background.changed") return { type: "progress", data: { background: data.tasks } };
  if (type === "prompt.dropped") return { type: "progress", data: { promptDropped: data.reason } };
  return undefined;
}

/** The stored content under the same types; an answer of a tool and what has no short form are progress. */
function presentWhole(event: StoredEvent): Presented | undefined {
  const { data, type } = event;
  if (type === "message") {
    return { type: data.message["type"] === "assistant" ? "output" : "progress", data: data.message };
  }
  if (type === "permission.asked" || type === "question.asked") return { type: "permission_request", data };
  if (type === "permission.answered" || type === "question.answered") return presentAnswer(data, "full");
  if (type === "notice") {
    const { details, kind, message } = data;
    return { type: "progress", data: { notice: kind, message, ...(details && { details }) } };
  }
  return presentChange(event);
}

type Answered = Extract<StoredEvent, { type: "permission.answered" }>["data"];

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
