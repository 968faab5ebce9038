import { z } from "zod";

/** A JSON object whose inside is not ours to define: tool inputs, messages of Claude Code, settings. */
export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;

/**
 * A value kept as JSON text, as in a database: it is shared with no caller, and what JSON cannot express (undefined, a Date, NaN)
 * is lost. NUL and lone surrogates survive: JSON escapes them.
 */
export class JsonText<T> {
  readonly #text: string;
  /** What comes out has the type of what went in: the text is made nowhere else. */
  readonly #parse: (text: string) => T = JSON.parse;

  /** Throws TypeError for what has no JSON: a cycle, a bigint. */
  constructor(value: T) {
    this.#text = JSON.stringify(value);
  }

  /** Characters of the text. */
  get length(): number {
    return this.#text.length;
  }

  /** A fresh copy each time. */
  read(): T {
    return this.#parse(this.#text);
  }
}
