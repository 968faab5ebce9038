import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { isObject, objectAt, textAt } from "../../parts/json.ts";
import { baseOf, type CallItem, type Picture, type TextItem, withCut } from "./item.ts";
import { summaryOfMessage } from "./message-summaries.ts";
import { callKey, type TimelineIndex } from "./timeline-index.ts";

type MessageEvent = Extract<ShownEvent, { type: "message" }>;

/** Message that is being reduced. */
interface MessageContext {
  readonly event: MessageEvent;
  readonly message: JsonObject;
  /** Id of the call that the subagent works for; "" for Claude Code itself. */
  readonly parent: string;
}

/** Reduces messages of Claude Code to items: text, thinking, calls and their results. */
export class MessageReducer {
  readonly #index: TimelineIndex;
  /** Ids of running background tasks. `#taskOfCall` has the task that each call has started. */
  #background: ReadonlySet<string> = new Set();
  readonly #taskOfCall = new Map<string, string>();
  #lastText = "";
  /** Last API error, unless text has followed. */
  #failure: TextItem | undefined;
  #result: JsonObject | undefined;

  constructor(index: TimelineIndex) {
    this.#index = index;
  }

  take(event: MessageEvent): void {
    const { message } = event.data;
    const reading = { event, message, parent: textAt(message, "parent_tool_use_id") ?? "" };
    const { type } = message;
    if (reading.parent !== "") this.#ensureCall(reading.parent, event);
    if (type === "assistant" && this.#takeAssistant(reading)) return;
    if (type === "user" && this.#takeUser(reading)) return;
    if (type === "result") return this.#takeResultMessage(reading);
    if (type === "system" && this.#takeTask(message)) return;
    this.#addLine(reading, undefined, message);
  }

  /** Returns the `result` message of the ending turn, once. */
  takeResult(): JsonObject | undefined {
    const result = this.#result;
    this.#result = undefined;
    return result;
  }

  /** Returns the error of a failed turn and hides the error's own item, because the end of the turn shows the error. */
  takeFailure(hasFailed: boolean): TextItem | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    if (!failure || !hasFailed) return undefined;
    this.#index.hide(failure.key);
    return failure;
  }

  stopCalls(): void {
    for (const item of this.#index.all()) {
      const isOpen = item.kind === "call" && (item.state === "running" || item.state === "asked");
      if (isOpen) this.#index.put({ ...item, state: "stopped" });
    }
  }

  runInBackground(tasks: readonly string[]): void {
    this.#background = new Set(tasks);
    for (const [callId, task] of this.#taskOfCall) {
      const call = this.#index.call(callId);
      if (call?.state === "done" && this.#background.has(task)) this.#index.put({ ...call, state: "background" });
      if (call?.state === "background" && !this.#background.has(task)) this.#index.put({ ...call, state: "done" });
    }
  }

  /** False if the content has an unexpected form, so that the message becomes a line. */
  #takeAssistant(reading: MessageContext): boolean {
    const blocks = blocksOf(reading.message);
    if (!blocks) return false;
    for (const [index, block] of blocks.entries()) this.#takeBlock(reading, index, block);
    if (blocks.length === 0 && isError(reading.message)) this.#addLine(reading, undefined, reading.message);
    return true;
  }

  #takeBlock(reading: MessageContext, index: number, block: unknown): void {
    if (!isObject(block) || !this.#takeKnownBlock(reading, index, block)) this.#addLine(reading, index, block);
  }

  #takeKnownBlock(reading: MessageContext, index: number, block: JsonObject): boolean {
    const base = baseOf(reading.event, `.${String(index)}`);
    const type = textAt(block, "type") ?? "";
    const [text, thinking] = [textAt(block, "text"), textAt(block, "thinking")];
    if (type === "text" && text !== undefined) this.#addText(reading, base, text);
    else if (type === "thinking" && thinking !== undefined) {
      if (thinking !== "") this.#index.add({ kind: "thinking", ...base, text: thinking }, reading.parent);
    } else if (CALLS.has(type)) return this.#takeCall(reading, block);
    else return type.endsWith("tool_result") && this.#finishCall(reading, index, block);
    return true;
  }

  #addText({ message, parent }: MessageContext, base: ReturnType<typeof baseOf>, text: string): void {
    if (text.trim() === "") return;
    const item: TextItem = { kind: "text", ...base, text, isError: isError(message) };
    this.#index.add(item, parent);
    if (parent !== "") return;
    this.#lastText = text;
    this.#failure = item.isError ? item : undefined;
  }

  #takeCall({ event, parent }: MessageContext, block: JsonObject): boolean {
    const [id, name] = [textAt(block, "id"), textAt(block, "name")];
    if (id === undefined || name === undefined) return false;
    const input = objectAt(block, "input") ?? {};
    const known = this.#index.call(id);
    if (known) this.#index.put({ ...known, name, input });
    else this.#index.add({ ...newCall(event, id), name, input }, parent === id ? "" : parent);
    return true;
  }

  /** Adds a placeholder for a call that lies before the loaded events. */
  #ensureCall(id: string, event: MessageEvent, parent = ""): void {
    if (!this.#index.call(id)) this.#index.add(newCall(event, id), parent);
  }

  #takeUser(reading: MessageContext): boolean {
    const blocks = blocksOf(reading.message);
    if (!blocks) return false;
    for (const [index, block] of blocks.entries()) {
      // Skipped, because the item of `turn.ended` reports the interrupt and its author.
      if (isObject(block) && block["type"] === "text" && INTERRUPTED.test(textAt(block, "text") ?? "")) continue;
      const isResult = isObject(block) && textAt(block, "type")?.endsWith("tool_result") === true;
      if (!isResult || !this.#finishCall(reading, index, block)) this.#addLine(reading, index, block);
    }
    return true;
  }

  #finishCall({ event, message, parent }: MessageContext, index: number, block: JsonObject): boolean {
    const id = textAt(block, "tool_use_id");
    if (id === undefined) return false;
    this.#ensureCall(id, event, parent === id ? "" : parent);
    const call = this.#index.call(id);
    if (!call) return false;
    const structured = objectAt(message, "tool_use_result");
    const isFailed = block["is_error"] === true;
    const output = textOfOutput(block["content"]);
    const pictures = picturesIn(event.id, block["content"], [...CONTENT, index, "content"]);
    this.#index.put({
      ...call,
      state: isFailed ? stateOfFailed(call, output) : this.#stateOfDone(id),
      output,
      endedAt: event.at,
      cutIn: withCut(call.cutIn, event),
      ...(structured && { structured }),
      ...(pictures.length > 0 && { pictures }),
    });
    return true;
  }

  #stateOfDone(callId: string): CallItem["state"] {
    const task = this.#taskOfCall.get(callId);
    return task !== undefined && this.#background.has(task) ? "background" : "done";
  }

  #takeResultMessage(reading: MessageContext): void {
    const { event, message } = reading;
    this.#result = message;
    const text = textAt(message, "result") ?? "";
    // A result usually repeats the last text. The answer to a command appears only in the result.
    if (text.trim() !== this.#lastText.trim()) this.#addText({ ...reading, parent: "" }, baseOf(event), text);
  }

  /** True if the call of the task shows the message, so that no line is needed. */
  #takeTask(message: JsonObject): boolean {
    const [subtype, task] = [textAt(message, "subtype"), textAt(message, "task_id")];
    if (task === undefined) return false;
    const callId = textAt(message, "tool_use_id") ?? [...this.#taskOfCall].find(([, each]) => each === task)?.[0];
    const call = callId === undefined ? undefined : this.#index.call(callId);
    if (!call) return false;
    this.#taskOfCall.set(call.id, task);
    if (subtype === "task_started") return true;
    const summary = textAt(message, "summary");
    if (subtype === "task_progress" && summary !== undefined) this.#index.put({ ...call, summary });
    if (subtype !== "task_notification") return subtype === "task_progress";
    const state = TASK_STATES.get(textAt(message, "status") ?? "") ?? call.state;
    const isOpen = call.state === "running" || call.state === "denied";
    this.#index.put({ ...call, state: isOpen ? call.state : state, ...(summary !== undefined && { summary }) });
    return true;
  }

  /** `index`: position of the block; `undefined` for a whole message. */
  #addLine({ event, parent }: MessageContext, index: number | undefined, more: unknown): void {
    const line = summaryOfMessage(isObject(more) ? more : { content: more });
    const base = baseOf(event, index === undefined ? "" : `.${String(index)}`);
    const isAlone = index !== undefined && isPicture(more);
    const pictures = isAlone ? [{ eventId: event.id, at: [...CONTENT, index, ...BASE64] }] : undefined;
    this.#index.add({ kind: "line", ...base, ...line, ...(pictures && { pictures }) }, parent);
  }
}

/** Text that Claude Code sends to its model after an interrupt. */
const INTERRUPTED = /^\s*\[Request interrupted by user[^\]]*\]\s*$/;

/** True for an error among the messages and results of Claude Code. */
function isError(message: JsonObject): boolean {
  return textAt(message, "error") !== undefined || message["is_error"] === true;
}

function stateOfFailed({ state }: CallItem, output: string): CallItem["state"] {
  if (state === "denied" || state === "stopped") return state;
  return INTERRUPTED.test(output) ? "stopped" : "failed";
}

const CALLS: ReadonlySet<string> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);

const TASK_STATES: ReadonlyMap<string, CallItem["state"]> = new Map([
  ["completed", "done"],
  ["failed", "failed"],
  ["stopped", "stopped"],
]);

function newCall(event: MessageEvent, id: string): CallItem {
  const base = { ...baseOf(event), key: callKey(id) };
  return { kind: "call", ...base, id, name: undefined, input: {}, state: "running", children: [] };
}

function blocksOf(message: JsonObject): readonly unknown[] | undefined {
  const content = objectAt(message, "message")?.["content"];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : undefined;
}

/** Path of the content blocks in an event of a message. */
const CONTENT = ["data", "message", "message", "content"] as const;
const BASE64 = ["source", "data"] as const;

function isPicture(part: unknown): boolean {
  return isObject(part) && part["type"] === "image" && objectAt(part, "source")?.["type"] === "base64";
}

function picturesIn(eventId: number, content: unknown, at: Picture["at"]): Picture[] {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.flatMap((part, place) => (isPicture(part) ? [{ eventId, at: [...at, place, ...BASE64] }] : []));
}

/** Joins text parts. Names the type of other parts, except pictures, which are shown separately. */
function textOfOutput(content: unknown): string {
  if (typeof content === "string") return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : isObject(content) ? [content] : [];
  return parts
    .filter((part) => !isPicture(part))
    .map((part) => (isObject(part) ? (textAt(part, "text") ?? `[${textAt(part, "type") ?? "?"}]`) : "[?]"))
    .join("\n");
}
