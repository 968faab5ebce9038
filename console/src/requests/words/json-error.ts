import type { JsonObject } from "../../../../src/domain/json.ts";
import { isObject } from "../../parts/json.ts";

/**
 * Parses JSON that people type and locates the first error, because messages of `JSON.parse` differ between browsers and may
 * lack the position.
 */

export type ParsedJson =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly problem: string; readonly at: number };

export function readObject(text: string): ParsedJson {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return { ok: true, value };
    return failure(text, { at: text.search(/\S/), expected: "one object in braces { }" });
  } catch {
    return failure(text, findError(text));
  }
}

interface SyntaxProblem {
  readonly at: number;
  readonly expected: string;
}

function failure(text: string, { at, expected }: SyntaxProblem): ParsedJson {
  const before = text.slice(0, at).split("\n");
  const line = String(before.length);
  const column = String((before.at(-1)?.length ?? 0) + 1);
  const found = at >= text.length ? "the end" : JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0));
  return { ok: false, at, problem: `Line ${line}, column ${column}: expected ${expected}, found ${found}.` };
}

class UnexpectedText extends Error {
  override readonly name = "Misplaced";
  readonly place: SyntaxProblem;
  constructor(place: SyntaxProblem) {
    super(place.expected);
    this.place = place;
  }
}

/** Finds the first position at which `text` stops being JSON. */
function findError(text: string): SyntaxProblem {
  const scan = new JsonScanner(text);
  try {
    scan.value();
    scan.end();
  } catch (error) {
    if (error instanceof UnexpectedText) return error.place;
    throw error;
  }
  return { at: text.length, expected: "JSON" };
}

/** Unescaped characters of a JSON string, and escapes. */
const INSIDE = String.raw`(?:[ !#-\[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*`;
const STRING = new RegExp(`"${INSIDE}"`, "uy");
/** Matches the valid beginning of a string. */
const STRING_BEGUN = new RegExp(`"${INSIDE}`, "uy");
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
const SPACE = /[ \t\n\r]*/y;
class JsonScanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): void {
    this.#take(SPACE);
    const next = this.#text[this.#at];
    if (next === "{") this.#list("}", () => this.#member());
    else if (next === "[") this.#list("]", () => this.value());
    else if (next === '"') this.#string();
    else if (!this.#take(SCALAR)) this.#fail("a value");
    this.#take(SPACE);
  }

  end(): void {
    if (this.#at < this.#text.length) this.#fail("nothing more");
  }

  #list(close: string, item: () => void): void {
    this.#at += 1;
    this.#take(SPACE);
    if (this.#skip(close)) return;
    do item();
    while (this.#skip(","));
    if (!this.#skip(close)) this.#fail(`a comma or ${close}`);
  }

  #member(): void {
    this.#take(SPACE);
    if (this.#text[this.#at] !== '"') this.#fail('a name in double quotes "');
    this.#string();
    this.#take(SPACE);
    if (!this.#skip(":")) this.#fail("a colon");
    this.value();
  }

  #string(): void {
    if (this.#take(STRING)) return;
    this.#take(STRING_BEGUN);
    const isBackslash = this.#text[this.#at] === "\\";
    this.#fail(
      isBackslash ? "a known escape (a lone \\ is written \\\\)" : 'the closing quote " (a new line is written \\n)',
    );
  }

  #skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  #fail(expected: string): never {
    throw new UnexpectedText({ at: this.#at, expected });
  }
}
