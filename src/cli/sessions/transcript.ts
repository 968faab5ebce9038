import type { StoredEvent, TurnEnded } from "../../domain/event.ts";
import { JsonObject } from "../../domain/json.ts";
import type { SessionRecord } from "./store.ts";
import { count, duration, harmless, isoTime, oneLine, statusWord, subject, usd } from "./words.ts";

/** Of what a tool gave back, in characters. */
const MAX_OUTPUT = 200;

/** A piece of the transcript: a line of a list, or something that stands by itself. */
interface Piece {
  readonly kind: "item" | "block";
  readonly text: string;
}

const item = (text: string): Piece => ({ kind: "item", text: `- ${text}` });
const block = (text: string): Piece => ({ kind: "block", text });

/**
 * A log as Markdown, for people. What was said is quoted: whatever headings or open fences it has stay inside. It keeps
 * no more of the log than it takes to tell the next event.
 */
export class Transcript {
  #before: Piece["kind"] | undefined;
  /** The tools that are called, by the id of the call. */
  readonly #calls = new Map<string, string>();
  /** What Claude Code said last, which its result mostly is. */
  #lastText = "";
  #result = "";

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

  /** Lines of one list stand together; everything else has air around it. */
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
    if (event.type === "message") return this.#message(event.data.message);
    if (event.type === "turn.ended") return this.#end(event.data);
    if (event.type === "prompt.queued") {
      return [block("## Prompt"), block(isoTime(event.at)), block(quote(event.data.text))];
    }
    if (event.type === "turn.started" && event.data.origin === "self") {
      return [block("## Claude Code continues on its own"), block(isoTime(event.at))];
    }
    return aside(event).map(item);
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
    const isTold = said !== "" && said === this.#lastText;
    const texts = [isTold ? "" : said, message, ...warnings].filter((text) => text !== "");
    this.#calls.clear();
    this.#result = "";
    this.#lastText = "";
    return [
      block(`### Result: ${outcome}`),
      block(
        `${count(numTurns, "model call")}, ${duration(durationMs)}, ${usd(costUsd)}${isTold ? "; the text above" : ""}`,
      ),
      ...texts.map((text) => block(quote(text))),
    ];
  }
}

/** What else is worth a line. Types that this version does not know are passed over. */
function aside(event: StoredEvent): string[] {
  if (event.type === "permission.asked" || event.type === "question.asked") {
    return [`asks: ${call(event.data.toolName, event.data.input)}`];
  }
  if (event.type === "permission.answered" || event.type === "question.answered") return [answer(event.data)];
  if (event.type === "notice") return [`notice (${event.data.kind}): ${code(event.data.message)}`];
  if (event.type === "prompt.dropped") return [`a prompt was dropped: ${code(event.data.reason)}`];
  if (event.type === "background.changed") {
    const tasks = event.data.tasks.map(({ description }) => code(description));
    return [tasks.length === 0 ? "no background tasks" : `in the background: ${tasks.join(", ")}`];
  }
  if (event.type === "process.exited" && !event.data.expected) {
    const { code: exitCode, error, signal } = event.data;
    return [`Claude Code ended unexpectedly: ${code(error ?? signal ?? `code ${String(exitCode)}`)}`];
  }
  if (event.type !== "session.closed") return [];
  const { by, message, reason } = event.data;
  return [`the session was ${reason} by ${code(by)}${message === undefined ? "" : `: ${code(message)}`}`];
}

type Answered = Extract<StoredEvent, { type: "permission.answered" }>["data"];

function answer({ behavior, by, forSession, message, toolName }: Answered): string {
  const verdict = behavior === "allow" ? "allowed" : "denied";
  const reach = forSession === true && behavior === "allow" ? " for the session" : "";
  const why = message === undefined || message === "" ? "" : `: ${code(message)}`;
  return `${oneLine(toolName, MAX_OUTPUT)} ${verdict}${reach} by ${by}${why}`;
}

function call(name: string, input: JsonObject): string {
  const about = subject(input);
  return `**${oneLine(name, MAX_OUTPUT)}**${about === "" ? "" : ` ${code(about)}`}`;
}

/** As it is, on one line, whatever Markdown means by it. */
function code(text: string): string {
  const line = oneLine(text, MAX_OUTPUT);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`;
}

function quote(text: string): string {
  const lines = harmless(text.replaceAll("\r\n", "\n")).trimEnd().split("\n");
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

/** Of an image or anything else that is no text, only its kind. */
function outputOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = objects(content).map((part) =>
    part["type"] === "text" ? stringOf(part["text"]) : `[${stringOf(part["type"])}]`,
  );
  return parts.join(" ");
}
