/**
 * Counts the content of a JSON text in bytes before anything parses it: parsed objects take up to a hundred times the size of
 * the text, and every schema walks through all of them again.
 */

export interface JsonBounds {
  /** Number of values in lists and objects, over all depths. */
  readonly members: number;
  /** Nesting of lists and objects. */
  readonly depth: number;
}

/** Bounds of one message of a client. The largest known messages of Claude Code have some hundred members. */
export const MESSAGE_BOUNDS: JsonBounds = { members: 10_000, depth: 1_000 };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Counts one text, given in any number of pieces. Invalid JSON gets some count, too, and is left to the parser. */
export class JsonSize {
  #members = 0;
  #depth = 0;
  #deepest = 0;
  #isInString = false;
  #isEscaped = false;

  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#isInString) at = this.#skipString(bytes, at);
      else this.#count(bytes[at]);
    }
  }

  /** Returns the first bound that is exceeded. */
  exceeded({ depth, members }: JsonBounds): keyof JsonBounds | undefined {
    if (this.#deepest > depth) return "depth";
    return this.#members > members ? "members" : undefined;
  }

  #count(byte = 0): void {
    switch (byte) {
      case QUOTE:
        this.#isInString = true;
        return;
      case COMMA:
        this.#members += 1;
        return;
      case OPEN_LIST:
      case OPEN_OBJECT:
        // Counts the first member, also for an empty list or object.
        this.#members += 1;
        this.#depth += 1;
        this.#deepest = Math.max(this.#deepest, this.#depth);
        return;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        this.#depth -= 1;
    }
  }

  /** Returns the index of the string's end, or the length of the piece. */
  #skipString(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#isInString = false;
        return at;
      }
    }
    return bytes.length;
  }
}

/** Returns the bound that a whole text exceeds. */
export function exceededBy(text: Uint8Array, bounds: JsonBounds): keyof JsonBounds | undefined {
  const size = new JsonSize();
  size.take(text);
  return size.exceeded(bounds);
}

/** Returns the message for the sender. */
export function exceededText(bound: keyof JsonBounds, bounds: JsonBounds): string {
  const most = String(bounds[bound]);
  if (bound === "depth") return `The message nests lists and objects more than ${most} deep. Send it flatter.`;
  return `The message holds more than ${most} values in its lists and objects. Send less at once.`;
}
