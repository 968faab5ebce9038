import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { NoticeKind } from "../../../../src/domain/event.ts";
import type { LineItem } from "./item.ts";

/** The words of what happens beside the talk: one line each. */

export type Summary = Pick<LineItem, "tone" | "text" | "more">;

export function summaryOf(event: ShownEvent): Summary {
  return summaryOfSession(event) ?? summaryOfRequest(event) ?? summaryOfUnknown(event);
}

function summaryOfSession({ data, type }: ShownEvent): Summary | undefined {
  if (type === "session.opened") return quiet(`Session opened in ${data.cwd}`, data);
  if (type === "session.configured") return quiet(wordsOfChoice(data), data);
  if (type === "session.closed") return summaryOfClose(data);
  if (type === "turn.started") return quiet(wordsOfStart(data.origin), data);
  if (type === "background.changed") return quiet(wordsOfBackground(data.tasks), data.tasks);
  if (type === "notice") return summaryOfNotice(data);
  if (type === "process.exited") return summaryOfExit(data);
  if (type !== "process.started") return undefined;
  return quiet(data.resumed ? "Claude Code restarted and resumed the session" : "Claude Code started", data);
}

/** Of one that was asked before all that is loaded. */
function summaryOfRequest({ data, type }: ShownEvent): Summary | undefined {
  if (type === "request.passed") return quiet(`An earlier request was passed on from ${data.from} to ${data.to}`, data);
  if (type !== "permission.answered" && type !== "question.answered") return undefined;
  const verdict = data.behavior === "allow" ? "allowed" : "denied";
  return quiet(`An earlier request for ${data.toolName} was ${verdict} (${data.by})`, data);
}

/** Of a newer server, or of none that this page knows. */
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

function summaryOfNotice({ details, kind, message }: Data<"notice">): Summary {
  // A kind of a newer server has no tone here.
  const tone = Object.hasOwn(TONES, kind) ? TONES[kind] : "warn";
  return { tone, text: message, ...(details && { more: details }) };
}

type Data<T extends ShownEvent["type"]> = Extract<ShownEvent, { type: T }>["data"];

function wordsOfChoice({ by, model, permissionMode }: Data<"session.configured">): string {
  const facts = [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(permissionMode === undefined ? [] : [`permission mode ${permissionMode}`]),
  ];
  const what = facts.length === 0 ? "nothing new" : facts.join(", ");
  return by === undefined ? `Claude Code uses ${what}` : `${by} chose ${what}`;
}

function summaryOfClose(data: Data<"session.closed">): Summary {
  const { by, message, reason } = data;
  const words = reason === "expired" ? "Session closed: not used for too long" : `Session ${reason} by ${by}`;
  const text = message === undefined ? words : `${words}: ${message}`;
  return { tone: reason === "cancelled" ? "warn" : "quiet", text, more: data };
}

function wordsOfStart(origin: Data<"turn.started">["origin"]): string {
  return origin === "self" ? "Claude Code continued by itself: a background task has ended" : "The next prompt began";
}

function wordsOfBackground(tasks: Data<"background.changed">["tasks"]): string {
  if (tasks.length === 0) return "No background tasks";
  const names = tasks.map(({ description, type }) => (description === "" ? type : description));
  return `Background tasks: ${names.join(", ")}`;
}

function summaryOfExit(data: Data<"process.exited">): Summary {
  const { code, error, expected, signal } = data;
  const how = signal === null ? `code ${String(code ?? "unknown")}` : `signal ${signal}`;
  if (expected) return quiet("Claude Code ended", data);
  const why = error === undefined ? "" : `: ${error}`;
  return { tone: "bad", text: `Claude Code ended unexpectedly (${how})${why}`, more: data };
}
