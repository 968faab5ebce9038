import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { cutText, fit, oneLine } from "../../view/size.ts";
import { CallBlock, OutcomeBlock, TextBlock, textOf, ThinkingBlock } from "../../view/blocks.ts";
import type { LogLevel, ToolCall } from "../define.ts";

/** Shown of each tool call, bytes of JSON. */
const [INPUT_BYTES, OUTPUT_BYTES] = [2_048, 4_096];
/** Kept for the answer: the newest. */
const KEPT = 200;
const LINE = 120;

interface Invocation {
  readonly toolUseId: string;
  readonly name: string;
  readonly input: JsonObject;
  readonly success?: boolean;
  readonly output?: string;
  readonly error?: string;
}

interface LogMessage {
  readonly level: LogLevel;
  readonly data: unknown;
  readonly line: string;
}

/** One turn of a conversation as its caller hears it: told while it happens, and kept for the answer. */
export class Conversation {
  readonly #sessionId: string;
  readonly #client: ToolCall["client"];
  readonly #withThinking: boolean;
  readonly #thinking: string[] = [];
  readonly #invocations = new Map<string, Invocation>();
  #lastText = "";
  #last = "Claude Code is at work";

  constructor(sessionId: string, { client }: ToolCall, withThinking: boolean) {
    this.#sessionId = sessionId;
    this.#client = client;
    this.#withThinking = withThinking;
  }

  async hear(message: JsonObject): Promise<void> {
    for (const part of heardIn(message)) await this.#report(this.#keep(part));
  }

  /** An event that was reported before: for the answer alone. */
  recall(message: JsonObject): void {
    for (const part of heardIn(message)) this.#last = oneLine(this.#keep(part)?.line ?? this.#last, LINE);
  }

  /** Nothing has come for a while: clients that time out on silence get a sign of life. */
  beat(): void {
    this.#advance(this.#last);
  }

  async fail(data: JsonObject): Promise<void> {
    await this.#log("error", data);
  }

  /** The last message about the turn. */
  async complete(): Promise<void> {
    await this.#log("info", `${this.#sessionId} completed`);
  }

  /** The last that it said, "" if nothing. */
  get lastText(): string {
    return this.#lastText;
  }

  get thinking(): readonly string[] {
    return this.#thinking;
  }

  get invocations(): readonly Invocation[] {
    return [...this.#invocations.values()];
  }

  /** The log message for it. */
  #keep(part: Part): LogMessage | undefined {
    switch (part.kind) {
      case "text":
        this.#lastText = part.text;
        return { level: "info", data: part.text, line: part.text };
      case "thinking":
        if (!this.#withThinking) return undefined;
        keep(this.#thinking, part.thinking);
        return { level: "info", data: { thinking: part.thinking }, line: part.thinking };
      case "call": {
        const { id: toolUseId, name } = part;
        const input = fit(part.input, INPUT_BYTES).value;
        this.#invocations.set(toolUseId, { toolUseId, name, input });
        const [oldest] = this.#invocations.keys();
        if (this.#invocations.size > KEPT && oldest !== undefined) this.#invocations.delete(oldest);
        return { level: "debug", data: { tool: name, toolUseId, input }, line: name };
      }
      case "outcome": {
        const call = this.#invocations.get(part.id);
        const output = cutText(part.output, OUTPUT_BYTES);
        const outcome = { success: part.success, ...(part.success ? { output } : { error: output }) };
        if (call) this.#invocations.set(part.id, { ...call, ...outcome });
        const tool = call?.name ?? "unknown";
        const line = `${tool} ${part.success ? "ok" : "failed"}`;
        return { level: "debug", data: { tool, toolUseId: part.id, ...outcome }, line };
      }
    }
  }

  /** Where a client takes no log notifications, progress has the text itself. */
  async #report(message: LogMessage | undefined): Promise<void> {
    if (!message) return;
    const { data, level, line } = message;
    this.#last = oneLine(line, LINE);
    this.#advance(this.#client.log ? this.#last : cutText(line, OUTPUT_BYTES));
    await this.#log(level, data);
  }

  #advance(message: string): void {
    this.#client.progress?.(message);
  }

  async #log(level: LogLevel, data: unknown): Promise<void> {
    await this.#client.log?.(level, data, this.#sessionId);
  }
}

/** Of a subagent only what it does. */
function heardIn(message: JsonObject): readonly Part[] {
  const { byAgent, parts } = partsOf(message);
  return parts.filter(({ kind }) => !byAgent || kind === "call" || kind === "outcome");
}

function keep(list: string[], text: string): void {
  list.push(cutText(text, OUTPUT_BYTES));
  if (list.length > KEPT) list.shift();
}

/** The parts of a Claude Code message that a conversation shows: text, thinking, tool calls and their results. */

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly thinking: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly kind: "outcome"; readonly id: string; readonly output: string; readonly success: boolean };

const Block = z.discriminatedUnion("type", [TextBlock, ThinkingBlock, CallBlock, OutcomeBlock]);

const Spoken = z.object({
  type: z.enum(["assistant", "user"]),
  parent_tool_use_id: z.string().nullish(),
  message: z.object({ content: z.array(z.unknown()) }),
});

/** `byAgent`: of a subagent, whose words are for the main conversation and not for the caller. */
export function partsOf(message: JsonObject): { readonly parts: readonly Part[]; readonly byAgent: boolean } {
  const spoken = Spoken.safeParse(message).data;
  if (!spoken) return { parts: [], byAgent: false };
  const isAssistant = spoken.type === "assistant";
  const parts = spoken.message.content.flatMap((block) => {
    const part = partOf(block);
    // What a user message says in words is the prompt.
    return part && (part.kind === "outcome") !== isAssistant ? [part] : [];
  });
  return { parts, byAgent: typeof spoken.parent_tool_use_id === "string" };
}

function partOf(block: unknown): Part | undefined {
  const known = Block.safeParse(block).data;
  switch (known?.type) {
    case "text":
      return known.text === "" ? undefined : { kind: "text", text: known.text };
    case "thinking":
      return known.thinking === "" ? undefined : { kind: "thinking", thinking: known.thinking };
    case "tool_use":
      return { kind: "call", id: known.id, name: known.name, input: known.input };
    case "tool_result":
      return {
        kind: "outcome",
        id: known.tool_use_id,
        output: textOf(known.content),
        success: known.is_error !== true,
      };
    case undefined:
      return undefined;
  }
}
