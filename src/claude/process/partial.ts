import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { lastCharacters, lastWordStart } from "../../domain/last-word.ts";

/** Maximum length of the reported text, characters. */
const MAX_CHARS = 4_000;
/** Maximum length of a kept word or unfinished private key, characters. */
const MAX_WORD_CHARS = 16 * MAX_CHARS;

/** Ends a word, because secrets consist of visible ASCII characters. */
const WORD_END = /[^\x21-\x7e]/;
/** Private key without its end line. */
const OPEN_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----(?![^]*-----END [A-Z ]*PRIVATE KEY-----)[^]*$/i;

/** Removes secrets from a text, or from an unfinished text. */
export interface PartialMask {
  readonly text: (text: string) => string;
  readonly unfinished: (text: string) => string;
}

/** Joins the pieces of a text while Claude Code is writing (`includePartialMessages`). */
export class PartialText {
  readonly #onText: (text: string) => void;
  readonly #mask: PartialMask;
  #text = "";
  /** True inside a word too long to keep: drops the rest of the word. */
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

  /**
   * Masks the complete part. The beginning of a possible secret stays unmasked, so that the whole secret is recognized later.
   */
  #shortened(text: string): string {
    const [header = ""] = OPEN_KEY.exec(text) ?? [];
    const at = header === "" ? lastWordStart(text) : text.length - header.length;
    const rest = text.slice(at);
    const kept = this.#mask.text(text.slice(0, at)).slice(-2 * MAX_CHARS);
    if (rest.length <= MAX_WORD_CHARS) return kept + rest;
    // The mask covers all of an open key, so the middle can be dropped.
    if (header !== "") return `${kept}${rest.slice(0, rest.indexOf("KEY-----"))}KEY-----${rest.slice(-MAX_CHARS)}`;
    this.#skips = true;
    return kept;
  }

  #report(text: string): void {
    if (text === this.#text) return;
    // Masks before cutting, because half of a secret would not be recognized and would leak.
    this.#text = text.length > 4 * MAX_CHARS ? this.#shortened(text) : text;
    this.#onText(lastCharacters(this.#mask.unfinished(this.#text), MAX_CHARS));
  }
}
