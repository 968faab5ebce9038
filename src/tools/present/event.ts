import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { presentMessage } from "./message.ts";
import { oneLine } from "./size.ts";
import { summaryOf } from "./summary.ts";

/** What a caller sees of the log. Whatever is not here is passed over by the cursor without a word. */

export type EventType = "output" | "progress" | "permission_request" | "permission_result" | "result" | "error";

export interface ShownEvent {
  readonly id: number;
  readonly type: EventType;
  readonly data: JsonObject;
  readonly timestamp: string;
}

interface Presented {
  readonly type: EventType;
  readonly data: JsonObject;
}

/** The end of a turn is not told here: it needs Claude Code's result beside the event. */
export function presentEvent(event: StoredEvent): ShownEvent | undefined {
  const presented = presentNews(event);
  return presented && { id: event.id, ...presented, timestamp: new Date(event.at).toISOString() };
}

function presentNews(event: StoredEvent): Presented | undefined {
  if (event.type === "message") return presentMessage(event.data.message);
  if (event.type === "permission.asked" || event.type === "question.asked") {
    const { requestId, toolName, input } = event.data;
    return { type: "permission_request", data: { requestId, toolName, summary: summaryOf(toolName, input) } };
  }
  if (event.type === "permission.answered" || event.type === "question.answered") return presentAnswer(event.data);
  if (event.type === "background.changed") return { type: "progress", data: { background: event.data.tasks } };
  if (event.type === "prompt.dropped") return { type: "progress", data: { promptDropped: event.data.reason } };
  if (event.type !== "notice") return undefined;
  return { type: "progress", data: { notice: event.data.kind, message: event.data.message } };
}

type Answered = Extract<StoredEvent, { type: "permission.answered" }>["data"];

function presentAnswer({ requestId, toolName, behavior, by, message, forSession }: Answered): Presented {
  const decision = forSession === true && behavior === "allow" ? "allow_for_session" : behavior;
  const data = { requestId, toolName, decision, by, ...(message !== undefined && { message }) };
  return { type: "permission_result", data };
}

/** What Claude Code is at, in one line, for somebody who waits. */
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
