import type { JsonObject } from "../domain/json.ts";

/** Answers are measured, and cut, in the bytes that they have as JSON in UTF-8. */

export interface Fitted {
  readonly value: JsonObject;
  /** True when something of the value is missing. */
  readonly cut: boolean;
}

export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Room for the quotes and the mark itself, whatever number it holds. */
const MARK_BYTES = 40;

/** Strings are not cut shorter than this while anything else can give: ids and paths stay whole. */
const GENEROUS = 256;
const TIGHT = 64;

/** The text, or as much of its beginning as takes `most` bytes as JSON, mark included. `most` is at least `TIGHT`. */
export function cutText(text: string, most: number): string {
  if (jsonBytes(text) <= most) return text;
  const shown = beginningWithin(text, most - MARK_BYTES);
  return shown + mark(Buffer.byteLength(text.slice(shown.length)));
}

/** As much of the text's beginning as takes `most` bytes inside a JSON string, no character halved. */
export function beginningWithin(text: string, most: number): string {
  let room = most;
  let end = 0;
  for (const character of text) {
    room -= encodedBytes(character.codePointAt(0) ?? 0);
    if (room < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** As many entries of a list as take `most` bytes, commas included; before any is left out, all lose `expendable`. */
export function fitList(list: readonly JsonObject[], most: number, expendable: string): readonly JsonObject[] {
  if (jsonBytes(list) <= most) return list;
  const bare = list.map((entry) => Object.fromEntries(Object.entries(entry).filter(([key]) => key !== expendable)));
  let left = most - 2;
  const over = bare.findIndex((entry) => (left -= jsonBytes(entry) + 1) < 0);
  return over < 0 ? bare : bare.slice(0, over);
}

/**
 * The object, or what of it takes at most `most` bytes. Strings are cut first, the longest first; then `expendable`
 * keys go, in their order; in the end every large value gives way to a mark.
 */
export function fit(value: JsonObject, most: number, expendable: readonly string[] = []): Fitted {
  if (jsonBytes(value) <= most) return { value, cut: false };
  let rest = value;
  for (let dropped = 0; dropped <= expendable.length; dropped += 1) {
    const gone = expendable.slice(0, dropped);
    rest = Object.fromEntries(Object.entries(value).filter(([key]) => !gone.includes(key)));
    const shortened = shorten(rest, most, GENEROUS);
    if (shortened) return { value: shortened, cut: true };
  }
  return { value: shorten(rest, most, TIGHT) ?? prune(rest, most), cut: true };
}

/** As many characters of the text as `most`, on one line. */
export function oneLine(text: string, most: number): string {
  const line = text
    .slice(0, most * 4)
    .replaceAll(/[\s\p{Cc}\p{Cs}]+/gu, " ")
    .trim();
  const short = firstCharacters(line, most);
  if (short.length === line.length && text.length <= most * 4) return line;
  return `${firstCharacters(line, most - 1)}…`;
}

/** The text up to `most` characters, none of them halved. */
export function firstCharacters(text: string, most: number): string {
  return Array.from(text.slice(0, most * 2))
    .slice(0, most)
    .join("");
}

function mark(bytes: number): string {
  return `… [cut, ${String(bytes)} bytes]`;
}

/** How many bytes JSON.stringify makes of a character; lone surrogates come out as escapes. */
function encodedBytes(code: number): number {
  if (code < 0x20) return [8, 9, 10, 12, 13].includes(code) ? 2 : 6;
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return code < 0x10000 ? 3 : 4;
}

/** Cuts all strings to the one length at which the value fits; undefined when that would be below `least`. */
function shorten(value: JsonObject, most: number, least: number): JsonObject | undefined {
  const sizes = stringsIn(value).map(jsonBytes);
  const fixed = jsonBytes(value) - sizes.reduce((sum, size) => sum + size, 0);
  const level = waterLevel(sizes, most - fixed);
  if (level < least) return undefined;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapStrings(each, level)]));
}

/** The level to which all sizes must be lowered so that together they take at most `room`. */
export function waterLevel(sizes: readonly number[], room: number): number {
  let left = room;
  let count = sizes.length;
  for (const size of sizes.toSorted((a, b) => a - b)) {
    if (size * count > left) return Math.floor(left / count);
    left -= size;
    count -= 1;
  }
  return left >= 0 ? Number.POSITIVE_INFINITY : -1;
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

function mapStrings(value: unknown, level: number): unknown {
  if (typeof value === "string") return cutText(value, level);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => mapStrings(each, level));
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapStrings(each, level)]));
}

/** The last resort: a mark in place of every large value, and only as many keys as there is room for. */
function prune(value: JsonObject, most: number): JsonObject {
  let left = most - 2;
  const small = Object.entries(value).map(([key, each]): [string, unknown] => {
    const bytes = jsonBytes(each);
    return [key, bytes > TIGHT ? mark(bytes) : each];
  });
  const kept = small.filter(([key, each]) => {
    const bytes = jsonBytes(key) + jsonBytes(each) + 2;
    if (bytes > left) return false;
    left -= bytes;
    return true;
  });
  return Object.fromEntries(kept);
}
