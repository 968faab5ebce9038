import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { endOf, lastWord } from "../../domain/last-word.ts";

/** Characters kept of a text that is being written. */
const MAX_CHARS = 4_000;
/** Maximum length of a word, or of an unfinished private key, that is kept. */
const MAX_WORD_CHARS = 16 * MAX_CHARS;

/** Secrets are of these characters. */
const WORD_END = /[^\x21-\x7e]/;
/** A private key that has not come to its end. */
const OPEN_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----(?![^]*-----END [A-Z ]*PRIVATE KEY-----)[^]*$/i;

/** Takes secrets out of a text, and of one that is still being written. */
export interface PartialMask {
  readonly text: (text: string) => string;
  readonly unfinished: (text: string) => string;
}

/** Puts the pieces of a text together while Claude Code writes it (includePartialMessages). */
export class PartialText {
  readonly #onText: (text: string) => void;
  readonly #mask: PartialMask;
  #text = "";
  /** Inside a word that is too long to be kept: the rest of it is dropped. */
  #skips = false;

  constructor(onText: (text: string) => void, mask: PartialMask) {
    this.#onText = onText;
    this.#mask = mask;
  }

  read(message: SDKMessage): void {
    if (message.type === "stream_event" && message.parent_tool_use_id === null) {
      const { event } = message;
      if (event.type === "content_block_start") this.#begin();
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
        this.#report(this.#text + this.#afterWord(event.delta.text));
      }
    } else if (message.type === "assistant" || message.type === "result") {
      this.#begin();
    }
  }

  #begin(): void {
    this.#skips = false;
    this.#report("");
  }

  #afterWord(text: string): string {
    if (!this.#skips) return text;
    const end = text.search(WORD_END);
    this.#skips = end < 0;
    return end < 0 ? "" : text.slice(end);
  }

  /** Masked as far as it is complete. What may be the beginning of a secret stays as it is, to be known when it is whole. */
  #shortened(text: string): string {
    const [header = ""] = OPEN_KEY.exec(text) ?? [];
    const at = header === "" ? lastWord(text) : text.length - header.length;
    const rest = text.slice(at);
    const kept = this.#mask.text(text.slice(0, at)).slice(-2 * MAX_CHARS);
    if (rest.length <= MAX_WORD_CHARS) return kept + rest;
    // All of an open key is masked, whatever is left of it.
    if (header !== "") return `${kept}${rest.slice(0, rest.indexOf("KEY-----"))}KEY-----${rest.slice(-MAX_CHARS)}`;
    this.#skips = true;
    return kept;
  }

  #report(text: string): void {
    if (text === this.#text) return;
    // Mask before cutting: half of a secret would not be recognised and would leak.
    this.#text = text.length > 4 * MAX_CHARS ? this.#shortened(text) : text;
    this.#onText(endOf(this.#mask.unfinished(this.#text), MAX_CHARS));
  }
}
