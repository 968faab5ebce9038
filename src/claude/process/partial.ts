import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";

/** Characters that are kept of a text that is being written. */
const KEPT = 4_000;

/** Puts the pieces of a text together while Claude Code writes it (includePartialMessages). */
export class PartialText {
  readonly #onText: (text: string) => void;
  #text = "";

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  read(message: SDKMessage): void {
    if (message.type === "stream_event" && message.parent_tool_use_id === null) {
      const { event } = message;
      if (event.type === "content_block_start") this.#tell("");
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
        this.#tell(this.#text + event.delta.text);
      }
    } else if (message.type === "assistant" || message.type === "result") {
      this.#tell("");
    }
  }

  #tell(text: string): void {
    if (text === this.#text) return;
    this.#text = text.slice(-KEPT);
    this.#onText(this.#text);
  }
}
