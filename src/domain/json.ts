import { z } from "zod";

/** JSON object of foreign content: tool inputs, messages of Claude Code, settings. */
export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;

/** Parses `text`. Returns `undefined` if `text` is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Value kept as JSON text, as in a database: callers never share an object, and values without JSON form (`undefined`, a
 * `Date`, `NaN`) are lost. NUL and lone surrogates survive, because JSON escapes them.
 */
export class JsonText<T> {
  readonly #text: string;
  /** Typed to return `T`, because only the constructor makes `#text`. */
  readonly #parse: (text: string) => T = JSON.parse;

  /** Throws `TypeError` for a value without JSON form: a cycle, a bigint. */
  constructor(value: T) {
    this.#text = JSON.stringify(value);
  }

  /** Length of the JSON text in characters. */
  get length(): number {
    return this.#text.length;
  }

  /** Returns a fresh copy each time. */
  read(): T {
    return this.#parse(this.#text);
  }
}
