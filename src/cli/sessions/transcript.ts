import { type ByEventType, type DataOf, decideBy } from "../../domain/event-table.ts";
import type { StoredEvent, TurnEnded } from "../../domain/event.ts";
import { JsonObject } from "../../domain/json.ts";
import { receiptText, verificationText } from "./evidence.ts";
import type { SessionRecord } from "./store.ts";
import { count, duration, stripControls, isoTime, oneLine, statusWord, callSubject, usd } from "./text-format.ts";

/** Maximum length of a tool's output, characters. */
const MAX_OUTPUT = 200;

/** A piece of the transcript: an item of a list, or a block with space around it. */
interface Piece {
  readonly kind: "item" | "block";
  readonly text: string;
}

const item = (text: string): Piece => ({ kind: "item", text: `- ${text}` });
const block = (text: string): Piece => ({ kind: "block", text });

/**
 * Formats a log as Markdown for people. Quotes texts, so that headings and open code fences stay inside. Holds only the parts
 * of the log needed for the next event.
 */
export class Transcript {
  #before: Piece["kind"] | undefined;
  /** Names of the tools being called, by id of the call. */
  readonly #calls = new Map<string, string>();
  /** Last assistant text, usually equal to the result. */
  #lastText = "";
  #result = "";

  readonly #pieces: ByEventType<Piece[], [at: number]> = {
    "session.opened": () => [],
    "session.configured": () => [],
    "session.closed": (data) => [closed(data)],
    "prompt.queued": ({ text }, at) => [block("## Prompt"), block(isoTime(at)), block(quote(text))],
    "prompt.steered": () => [],
    "prompt.dropped": ({ reason }) => [item(`a prompt was dropped: ${code(reason)}`)],
    "turn.started": ({ origin }, at) =>
      origin === "self" ? [block("## Claude Code continues on its own"), block(isoTime(at))] : [],
    "turn.baseline": () => [],
    "verification.started": () => [],
    "verification.ended": ({ verification }) => [item(verificationText(verification, code))],
    "turn.receipt": ({ receipt }) => [item(receiptText(receipt, code))],
    "turn.ended": (data) => this.#end(data),
    message: ({ message }) => this.#message(message),
    "permission.asked": asked,
    "permission.answered": (data) => [item(answer(data))],
    "question.asked": asked,
    "question.answered": (data) => [item(answer(data))],
    "request.passed": () => [],
    "background.changed": (data) => [background(data)],
    notice: ({ kind, message }) => [item(`notice (${kind}): ${code(message)}`)],
    "process.started": () => [],
    "process.exited": exit,
  };

  begin(record: SessionRecord): string {
    const { createdAt, id, spec, state, title, unreadable } = record;
    const model = state.reported.model ?? spec.model;
    const facts = [
      `Folder: ${code(spec.cwd)}`,
      ...(model === undefined ? [] : [`Model: ${code(model)}`]),
      `Status: ${statusWord(record)}`,
      ...(unreadable ? [`Unreadable: ${code(unreadable.why)}`] : []),
      `Opened: ${isoTime(createdAt)}`,
      `Totals: ${count(state.totals.turns, "model call")}, ${usd(state.totals.costUsd)}`,
    ];
    const name = title === undefined ? [] : [block(quote(title))];
    return this.#join([block(`# Session ${id}`), ...name, ...facts.map(item)]);
  }

  page(events: readonly StoredEvent[]): string {
    return this.#join(events.flatMap((event) => this.#piecesOf(event)));
  }

  /** Joins pieces: items of a list without space between them, all else with an empty line. */
  #join(pieces: readonly Piece[]): string {
    const texts = pieces.map(({ kind, text }) => {
      const isClose = kind === "item" && this.#before === "item";
      const air = this.#before === undefined || isClose ? "" : "\n";
      this.#before = kind;
      return `${air}${text}\n`;
    });
    return texts.join("");
  }

  #piecesOf(event: StoredEvent): Piece[] {
    // Skips types of a newer server.
    return decideBy(this.#pieces, event, event.at) ?? [];
  }

  #message(message: JsonObject): Piece[] {
    const { type } = message;
    if (type === "result") {
      this.#result = stringOf(message["result"]);
      return [];
    }
    if (type === "system" && message["subtype"] === "task_notification") {
      return [item(`in the background: ${stringOf(message["status"])} ${code(stringOf(message["summary"]))}`)];
    }
    const who = typeof message["parent_tool_use_id"] === "string" ? "Subagent" : "Claude Code";
    return objects(objectOf(message["message"])["content"]).flatMap((part) => {
      if (type === "assistant" && part["type"] === "text") return this.#text(who, stringOf(part["text"]));
      if (part["type"] === "tool_use") return this.#call(who, part);
      return part["type"] === "tool_result" ? [item(this.#outcome(part))] : [];
    });
  }

  #text(who: string, text: string): Piece[] {
    if (text.trim() === "") return [];
    this.#lastText = text;
    return [block(`**${who}**`), block(quote(text))];
  }

  #call(who: string, part: JsonObject): Piece[] {
    const name = stringOf(part["name"]);
    this.#calls.set(stringOf(part["id"]), name);
    const of = who === "Subagent" ? " (subagent)" : "";
    return [item(`calls${of} ${call(name, objectOf(part["input"]))}`)];
  }

  #outcome(part: JsonObject): string {
    const id = stringOf(part["tool_use_id"]);
    const name = this.#calls.get(id) ?? "tool";
    this.#calls.delete(id);
    const output = oneLine(outputOf(part["content"]), MAX_OUTPUT);
    const verdict = part["is_error"] === true ? "failed" : "done";
    return `${oneLine(name, MAX_OUTPUT)} ${verdict}${output === "" ? "" : `: ${code(output)}`}`;
  }

  #end(ended: TurnEnded): Piece[] {
    const { costUsd, durationMs, message = "", numTurns, outcome, resultEventId, warnings = [] } = ended;
    const said = resultEventId === undefined ? "" : this.#result;
    const isShown = said !== "" && said === this.#lastText;
    const texts = [isShown ? "" : said, message, ...warnings].filter((text) => text !== "");
    this.#calls.clear();
    this.#result = "";
    this.#lastText = "";
    return [
      block(`### Result: ${outcome}`),
      block(
        `${count(numTurns, "model call")}, ${duration(durationMs)}, ${usd(costUsd)}${isShown ? "; the text above" : ""}`,
      ),
      ...texts.map((text) => block(quote(text))),
    ];
  }
}

function asked({ input, toolName }: DataOf<"permission.asked">): Piece[] {
  return [item(`asks: ${call(toolName, input)}`)];
}

function background({ tasks }: DataOf<"background.changed">): Piece {
  const names = tasks.map(({ description }) => code(description));
  return item(tasks.length === 0 ? "no background tasks" : `in the background: ${names.join(", ")}`);
}

function exit({ code: exitCode, error, expected, signal }: DataOf<"process.exited">): Piece[] {
  const why = code(error ?? signal ?? `code ${String(exitCode)}`);
  return expected ? [] : [item(`Claude Code ended unexpectedly: ${why}`)];
}

function closed({ by, message, reason }: DataOf<"session.closed">): Piece {
  return item(`the session was ${reason} by ${code(by)}${message === undefined ? "" : `: ${code(message)}`}`);
}

type Answered = DataOf<"permission.answered">;

function answer({ behavior, by, forSession, message, toolName }: Answered): string {
  const verdict = behavior === "allow" ? "allowed" : "denied";
  const reach = forSession === true && behavior === "allow" ? " for the session" : "";
  const why = message === undefined || message === "" ? "" : `: ${code(message)}`;
  return `${oneLine(toolName, MAX_OUTPUT)} ${verdict}${reach} by ${by}${why}`;
}

function call(name: string, input: JsonObject): string {
  const about = callSubject(input);
  return `**${oneLine(name, MAX_OUTPUT)}**${about === "" ? "" : ` ${code(about)}`}`;
}

/** Formats `text` as inline code on one line, safe from Markdown in `text`. */
function code(text: string): string {
  const line = oneLine(text, MAX_OUTPUT);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`;
}

function quote(text: string): string {
  const lines = stripControls(text.replaceAll("\r\n", "\n")).trimEnd().split("\n");
  return lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n");
}

function objectOf(value: unknown): JsonObject {
  return JsonObject.safeParse(value).data ?? {};
}

function objects(value: unknown): JsonObject[] {
  const list: unknown[] = Array.isArray(value) ? value : [];
  return list.map(objectOf);
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the text of a tool's output. Of images and other kinds, only the kind. */
function outputOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = objects(content).map((part) =>
    part["type"] === "text" ? stringOf(part["text"]) : `[${stringOf(part["type"])}]`,
  );
  return parts.join(" ");
}
