import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { ByEventType, DataOf, TypedEvent } from "../../../../src/domain/event-table.ts";
import type { EventType, NoticeKind } from "../../../../src/domain/event.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { objectAt, textAt } from "../../parts/json.ts";
import type { LineItem } from "./item.ts";

/** Summaries of events beside the conversation, one line each. */

export type Summary = Pick<LineItem, "tone" | "text" | "more">;

export function summaryOf(event: ShownEvent): Summary {
  return summaryOfKnown(event) ?? summaryOfUnknown(event);
}

function summaryOfKnown<T extends EventType>({ data, type }: TypedEvent<T>): Summary | undefined {
  return Object.hasOwn(SUMMARIES, type) ? SUMMARIES[type](data) : undefined;
}

/** For events that become items of their own kind. */
const item = (): undefined => undefined;

const SUMMARIES: ByEventType<Summary | undefined> = {
  "session.opened": (data) => quiet(`Session opened in ${data.cwd}`, data),
  "session.configured": (data) => quiet(wordsOfChoice(data), data),
  "session.closed": summaryOfClose,
  // Sent by the server: a prompt of a user is an item of its own.
  "prompt.queued": ({ text }) => quiet("Sent back to Claude Code to repair", text),
  "prompt.steered": item,
  "prompt.dropped": item,
  "turn.started": (data) => quiet(wordsOfStart(data.origin), data),
  "turn.baseline": item,
  "verification.started": item,
  "verification.ended": item,
  "turn.receipt": item,
  "turn.ended": item,
  message: item,
  "permission.asked": item,
  "permission.answered": summaryOfAnswer,
  "question.asked": item,
  "question.answered": summaryOfAnswer,
  "request.passed": (data) => quiet(`An earlier request was passed on from ${data.from} to ${data.to}`, data),
  "background.changed": ({ tasks }) => quiet(wordsOfBackground(tasks), tasks),
  notice: summaryOfNotice,
  "process.started": (data) =>
    quiet(data.resumed ? "Claude Code restarted and resumed the session" : "Claude Code started", data),
  "process.exited": summaryOfExit,
};

/** Summarizes an answer whose request lies before the loaded events. */
function summaryOfAnswer(data: DataOf<"permission.answered">): Summary {
  const verdict = data.behavior === "allow" ? "allowed" : "denied";
  return quiet(`An earlier request for ${data.toolName} was ${verdict} (${data.by})`, data);
}

/** Summarizes an event of a newer server. */
function summaryOfUnknown({ data, type }: { readonly type: string; readonly data: unknown }): Summary {
  return quiet(type, data);
}

const TONES: Readonly<Record<NoticeKind, LineItem["tone"]>> = {
  retry: "warn",
  fallback: "warn",
  compaction: "quiet",
  denial: "warn",
  rate_limit: "warn",
  data_loss: "bad",
  untrusted_directory: "warn",
  rewind: "warn",
  waiting: "quiet",
  warning: "warn",
  revoked: "quiet",
  unattended: "warn",
  "owner.changed": "quiet",
};

function quiet(text: string, more: unknown): Summary {
  return { tone: "quiet", text, more };
}

function summaryOfNotice({ details, kind, message }: DataOf<"notice">): Summary {
  // Kinds of a newer server have no tone here.
  const usual = Object.hasOwn(TONES, kind) ? TONES[kind] : "warn";
  const tone = kind === "rate_limit" && allowsRequests(details) ? "quiet" : usual;
  return { tone, text: message, ...(details && { more: details }) };
}

/** True for a report of the API on the windows of the plan while no limit is reached. */
function allowsRequests(details: JsonObject = {}): boolean {
  const info = objectAt(details, "rate_limit_info") ?? {};
  return textAt(info, "status")?.startsWith("allowed") === true && info["isUsingOverage"] !== true;
}

function wordsOfChoice({ by, model, permissionMode }: DataOf<"session.configured">): string {
  const facts = [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(permissionMode === undefined ? [] : [`permission mode ${permissionMode}`]),
  ];
  const what = facts.length === 0 ? "nothing new" : facts.join(", ");
  return by === undefined ? `Claude Code uses ${what}` : `${by} chose ${what}`;
}

function summaryOfClose(data: DataOf<"session.closed">): Summary {
  const { by, message, reason } = data;
  const words = reason === "expired" ? "Session closed: not used for too long" : `Session ${reason} by ${by}`;
  const text = message === undefined ? words : `${words}: ${message}`;
  return { tone: reason === "cancelled" ? "warn" : "quiet", text, more: data };
}

function wordsOfStart(origin: DataOf<"turn.started">["origin"]): string {
  if (origin === "verify") return "Commands were run on demand";
  return origin === "self" ? "Claude Code continued by itself: a background task has ended" : "The next prompt began";
}

function wordsOfBackground(tasks: DataOf<"background.changed">["tasks"]): string {
  if (tasks.length === 0) return "No background tasks";
  const names = tasks.map(({ description, type }) => (description === "" ? type : description));
  return `Background tasks: ${names.join(", ")}`;
}

function summaryOfExit(data: DataOf<"process.exited">): Summary {
  const { code, error, expected, signal } = data;
  const how = signal === null ? `code ${String(code ?? "unknown")}` : `signal ${signal}`;
  if (expected) return quiet("Claude Code ended", data);
  const why = error === undefined ? "" : `: ${error}`;
  return { tone: "bad", text: `Claude Code ended unexpectedly (${how})${why}`, more: data };
}
