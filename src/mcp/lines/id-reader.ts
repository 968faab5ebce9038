import { isId } from "../unanswered-requests.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Maximum length of an id that the answer repeats, bytes. */
const MAX_ID = 100_000;

/**
 * Finds the id of a message that is too large to parse, or with a number as id that JavaScript would round. `take` accepts the
 * message in any pieces.
 */
export class IdReader {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isList = false;
  /** Key of the next value in the outermost object; `undefined` before a key. */
  #key: string | undefined;
  /** Bytes of the current key or value of the outermost object. */
  #token: number[] = [];
  #found: string | undefined;

  /** JSON spelling of the id; "null" if neither string nor number; `undefined` if there is none. */
  get found(): string | undefined {
    return this.#isList ? "null" : this.#found;
  }

  take(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (this.#isInString) this.#inString(byte);
      else this.#outside(byte);
    }
  }

  #inString(byte: number): void {
    this.#keep(byte);
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = false;
  }

  #outside(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#isInString = true;
        return this.#keep(byte);
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (this.#depth === 0) this.#isList = byte === OPEN_LIST;
        this.#keep(byte);
        this.#depth += 1;
        return;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        if (this.#depth === 1) this.#endValue();
        this.#depth -= 1;
        return;
      case COLON:
        if (this.#depth === 1) this.#key ??= this.#takeToken();
        return;
      case COMMA:
        if (this.#depth === 1) this.#endValue();
        return;
      default:
        if (byte > 0x20) this.#keep(byte);
    }
  }

  #keep(byte: number): void {
    if (this.#depth === 1 && this.#token.length <= MAX_ID) this.#token.push(byte);
  }

  #takeToken(): string {
    const text = Buffer.from(this.#token).toString("utf8");
    this.#token = [];
    return text;
  }

  /** Keeps the last `id`, as `JSON.parse` does. */
  #endValue(): void {
    const text = this.#takeToken();
    if (this.#key === '"id"') this.#found = isSpelledId(text) ? text : "null";
    this.#key = undefined;
  }
}

/** True if `text` alone is a JSON id, because the answer repeats `text` verbatim. */
function isSpelledId(text: string): boolean {
  if (text.length > MAX_ID) return false;
  try {
    return isId(JSON.parse(text));
  } catch {
    return false;
  }
}
