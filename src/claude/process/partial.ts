import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";

/** Characters that are kept of a text that is being written. */
const KEPT = 4_000;
/** A word, or an open private key, is kept up to so many. */
const MAX_WORD = 16 * KEPT;

/** Secrets are of these characters. */
const WORD_END = /[^\x21-\x7e]/;
/** A private key that has not come to its end. */
const OPEN_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----(?![^]*-----END [A-Z ]*PRIVATE KEY-----)[^]*$/i;

/** Where it begins; the end of the text, where that is the end of a word. */
function lastWord(text: string): number {
  let at = text.length;
  while (at > 0 && !WORD_END.test(text.charAt(at - 1))) at -= 1;
  return at;
}

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
  /** In a word that is too long to be kept: what is left of it is not told. */
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
        this.#tell(this.#text + this.#afterWord(event.delta.text));
      }
    } else if (message.type === "assistant" || message.type === "result") {
      this.#begin();
    }
  }

  #begin(): void {
    this.#skips = false;
    this.#tell("");
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
    const kept = this.#mask.text(text.slice(0, at)).slice(-2 * KEPT);
    if (rest.length <= MAX_WORD) return kept + rest;
    // All of an open key is masked, whatever is left of it.
    if (header !== "") return `${kept}${rest.slice(0, rest.indexOf("KEY-----"))}KEY-----${rest.slice(-KEPT)}`;
    this.#skips = true;
    return kept;
  }

  #tell(text: string): void {
    if (text === this.#text) return;
    // Masked before it is cut: the rest of a secret that was cut in two would be told.
    this.#text = text.length > 4 * KEPT ? this.#shortened(text) : text;
    this.#onText(this.#mask.unfinished(this.#text).slice(-KEPT));
  }
}
