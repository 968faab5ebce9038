import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { cutText, fit, oneLine } from "../../view/size.ts";
import { CallBlock, OutcomeBlock, TextBlock, textOf, ThinkingBlock } from "../../domain/blocks.ts";
import type { LogLevel, ToolCall } from "../define.ts";

/** Maximum sizes of the input and the output of a tool call, bytes of JSON. */
const [INPUT_BYTES, OUTPUT_BYTES] = [2_048, 4_096];
/** Maximum number of tool calls, and of thinking texts, in the answer. The newest are kept. */
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

/** Turn of a conversation: streams its parts to the client and keeps them for the answer. */
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
    for (const part of visibleParts(message)) await this.#report(this.#keep(part));
  }

  /** Keeps the parts of a message of an earlier round, without sending them again. A form ends a round of the call. */
  recall(message: JsonObject): void {
    for (const part of visibleParts(message)) this.#last = oneLine(this.#keep(part)?.line ?? this.#last, LINE);
  }

  /** Repeats the last line as a keepalive, because a client may time out on silence. */
  beat(): void {
    this.#advance(this.#last);
  }

  /** Sends a line as progress only. */
  advance(line: string): void {
    this.#last = line;
    this.#advance(line);
  }

  async fail(data: JsonObject): Promise<void> {
    await this.#log("error", data);
  }

  /** Sends the last message about the turn. */
  async complete(): Promise<void> {
    await this.#log("info", `${this.#sessionId} completed`);
  }

  /** Last text of Claude Code; "" if none. */
  get lastText(): string {
    return this.#lastText;
  }

  get thinking(): readonly string[] {
    return this.#thinking;
  }

  get invocations(): readonly Invocation[] {
    return [...this.#invocations.values()];
  }

  /** Keeps the part and returns its log message. */
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

  /** Sends the message as log and as progress. Progress has the full text if the client accepts no log notifications. */
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

/** Returns the parts to show. For a subagent, only tool calls and their results. */
function visibleParts(message: JsonObject): readonly Part[] {
  const { byAgent, parts } = partsOf(message);
  return parts.filter(({ kind }) => !byAgent || kind === "call" || kind === "outcome");
}

function keep(list: string[], text: string): void {
  list.push(cutText(text, OUTPUT_BYTES));
  if (list.length > KEPT) list.shift();
}

/** Extracts the parts of a Claude Code message shown in a conversation: text, thinking, tool calls and their results. */

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

/** `byAgent` is true for a subagent. Its texts are meant for the main conversation, not for the caller. */
export function partsOf(message: JsonObject): { readonly parts: readonly Part[]; readonly byAgent: boolean } {
  const spoken = Spoken.safeParse(message).data;
  if (!spoken) return { parts: [], byAgent: false };
  const isAssistant = spoken.type === "assistant";
  const parts = spoken.message.content.flatMap((block) => {
    const part = partOf(block);
    // Text in a user message is the prompt.
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
