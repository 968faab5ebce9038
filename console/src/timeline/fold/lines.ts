import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { NoticeKind } from "../../../../src/domain/event.ts";
import type { LineItem } from "./item.ts";

/** The words of what happens beside the talk: one line each. */

export type Line = Pick<LineItem, "tone" | "text" | "more">;

export function lineOf(event: ShownEvent): Line {
  switch (event.type) {
    case "session.opened":
      return quiet(`Session opened in ${event.data.cwd}${byWhom(event.data.openedBy)}`, event.data);
    case "session.configured":
      return quiet(wordsOfChoice(event.data), event.data);
    case "session.closed":
      return lineOfClose(event.data);
    case "prompt.queued":
    case "prompt.steered":
    case "prompt.dropped":
      return quiet("A prompt", event.data);
    case "turn.started":
      return quiet(wordsOfStart(event.data.origin), event.data);
    case "background.changed":
      return quiet(wordsOfBackground(event.data.tasks), event.data.tasks);
    case "notice":
      return { tone: TONES[event.data.kind], text: event.data.message, ...whereSaid(event.data.details) };
    case "process.started":
      return quiet(event.data.resumed ? "Claude Code started again, where it was" : "Claude Code started", event.data);
    case "process.exited":
      return lineOfExit(event.data);
    case "permission.answered":
    case "question.answered": {
      const { behavior, by, toolName } = event.data;
      return quiet(
        `An earlier request for ${toolName} was ${behavior === "allow" ? "allowed" : "denied"} (${by})`,
        event.data,
      );
    }
    case "request.passed":
      return quiet(`An earlier request went on from ${event.data.from} to ${event.data.to}`, event.data);
    default:
      return lineOfUnknown(event);
  }
}

/** Of a newer server, or of none that this page knows. */
export function lineOfUnknown({ data, type }: { readonly type: string; readonly data: unknown }): Line {
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
};

function quiet(text: string, more: unknown): Line {
  return { tone: "quiet", text, more };
}

function whereSaid(more: unknown): Pick<Line, "more"> {
  return more === undefined ? {} : { more };
}

function byWhom(by: string | undefined): string {
  return by === undefined ? "" : ` by ${by}`;
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

function lineOfClose(data: Data<"session.closed">): Line {
  const { by, message, reason } = data;
  const words = reason === "expired" ? "Session closed: unused for long" : `Session ${reason} by ${by}`;
  const text = message === undefined ? words : `${words}: ${message}`;
  return { tone: reason === "cancelled" ? "warn" : "quiet", text, more: data };
}

function wordsOfStart(origin: Data<"turn.started">["origin"]): string {
  return origin === "self"
    ? "Claude Code went on by itself: work in the background has ended"
    : "The next prompt began";
}

function wordsOfBackground(tasks: Data<"background.changed">["tasks"]): string {
  if (tasks.length === 0) return "Nothing runs in the background any more";
  const names = tasks.map(({ description, type }) => (description === "" ? type : description));
  return `In the background: ${names.join(", ")}`;
}

function lineOfExit(data: Data<"process.exited">): Line {
  const { code, error, expected, signal } = data;
  const how = signal === null ? `code ${String(code ?? "unknown")}` : `signal ${signal}`;
  if (expected) return quiet("Claude Code ended", data);
  const why = error === undefined ? "" : `: ${error}`;
  return { tone: "bad", text: `Claude Code ended unexpectedly (${how})${why}`, more: data };
}
