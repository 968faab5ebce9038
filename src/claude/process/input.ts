import type { SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import type { UUID } from "node:crypto";
import type { Attachment } from "../../domain/prompt.ts";

/** Unbounded async queue with a single reader: the input stream of a Claude Code process. */
export class AsyncQueue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  push(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) yield item;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Formats a prompt for Claude Code. */
export function userMessage({
  attachments,
  id,
  text,
}: {
  id: string;
  text: string;
  attachments: readonly Attachment[];
}): SDKUserMessage {
  const content = attachments.length === 0 ? text : withImages(text, attachments);
  return { type: "user", message: { role: "user", content }, parent_tool_use_id: null, uuid: toUuid(id) };
}

/**
 * Formats a message without content: after a refusal at a limit of the plan, Claude Code sends the refused request again
 * unchanged. Undocumented, so test/claude/plan-limits.test.ts checks it with each binary.
 */
export function emptyMessage(id: string): SDKUserMessage {
  return { type: "user", message: { role: "user", content: [] }, parent_tool_use_id: null, uuid: toUuid(id) };
}

function withImages(text: string, attachments: readonly Attachment[]): MessageContent {
  const images = attachments.map(({ data, mediaType }) => {
    return { type: "image" as const, source: { type: "base64" as const, media_type: mediaType, data } };
  });
  return [...images, { type: "text", text }];
}

type MessageContent = Exclude<SDKUserMessage["message"]["content"], string>;

function toUuid(id: string): UUID {
  const parts = id.split("-");
  if (parts.length !== 5) throw new Error("a prompt id is a UUID");
  const [a = "", b = "", c = "", d = "", e = ""] = parts;
  return `${a}-${b}-${c}-${d}-${e}`;
}
