import type { JsonObject } from "../domain/json.ts";

/** Measures and cuts answers, in bytes of JSON in UTF-8. */

export interface Fitted {
  readonly value: JsonObject;
  /** True if any part of the value is missing. */
  readonly cut: boolean;
}

export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Bytes for quotes and the mark, with any number in the mark. */
const MARK_BYTES = 40;

/**
 * Strings keep at least `GENEROUS` bytes while keys can be dropped instead, so that ids and paths stay whole; `TIGHT` is the
 * last limit.
 */
const GENEROUS = 256;
const TIGHT = 64;

/** Cuts `text` to `most` bytes of JSON, mark included. `most` must be at least `TIGHT`. */
export function cutText(text: string, most: number): string {
  if (jsonBytes(text) <= most) return text;
  const shown = beginningWithin(text, most - MARK_BYTES);
  return shown + mark(Buffer.byteLength(text.slice(shown.length)));
}

/** Returns the longest beginning of `text` within `most` bytes inside a JSON string. Never splits a character. */
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

/**
 * Returns the longest beginning of `list` within `most` bytes, commas included. Entries are left out only after all have lost
 * the key `expendable`.
 */
export function fitList(list: readonly JsonObject[], most: number, expendable: string): readonly JsonObject[] {
  if (jsonBytes(list) <= most) return list;
  const bare = list.map((entry) => Object.fromEntries(Object.entries(entry).filter(([key]) => key !== expendable)));
  let left = most - 2;
  const over = bare.findIndex((entry) => (left -= jsonBytes(entry) + 1) < 0);
  return over < 0 ? bare : bare.slice(0, over);
}

/**
 * Fits an object into `most` bytes. Cuts strings first, longest first; then drops `expendable` keys in order; finally replaces
 * every large value by a mark.
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

/** Puts `text` on one line of at most `most` characters. */
export function oneLine(text: string, most: number): string {
  const line = text
    .slice(0, most * 4)
    .replaceAll(/[\s\p{Cc}\p{Cs}]+/gu, " ")
    .trim();
  const short = firstCharacters(line, most);
  if (short.length === line.length && text.length <= most * 4) return line;
  return `${firstCharacters(line, most - 1)}…`;
}

/** Returns the first `most` characters. Never splits a character. */
export function firstCharacters(text: string, most: number): string {
  return Array.from(text.slice(0, most * 2))
    .slice(0, most)
    .join("");
}

function mark(bytes: number): string {
  return `… [cut, ${String(bytes)} bytes]`;
}

/** Returns the number of bytes of a character in JSON. Lone surrogates are escaped. */
function encodedBytes(code: number): number {
  if (code < 0x20) return [8, 9, 10, 12, 13].includes(code) ? 2 : 6;
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return code < 0x10000 ? 3 : 4;
}

/** Cuts all strings to a common maximum so that the value fits. Returns `undefined` if the maximum would be below `least`. */
function shorten(value: JsonObject, most: number, least: number): JsonObject | undefined {
  const sizes = stringsIn(value).map(jsonBytes);
  const fixed = jsonBytes(value) - sizes.reduce((sum, size) => sum + size, 0);
  const level = waterLevel(sizes, most - fixed);
  if (level < least) return undefined;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapStrings(each, level)]));
}

/** Returns the common maximum to which sizes must be cut to fit into `room` together. */
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

/** Last resort: replaces every large value by a mark, and drops keys without room. */
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
