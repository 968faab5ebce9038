import type { StoredEvent } from "../domain/event.ts";
import type { ShownEvent } from "./wire.ts";

/**
 * Events as the page gets them. Texts of megabytes are cut to their beginning, and what is nested deeper than `MAX_DEPTH` is
 * replaced by "…": tool inputs can be nested so deep that code which reads them recursively would fail.
 */

/** Characters of one text, and levels of what stands in one event. */
const [MAX_TEXT, MAX_DEPTH] = [10_000, 100];

export function shownEvent(event: StoredEvent): ShownEvent {
  if (!isTooMuch(event, 0)) return event;
  const copy: StoredEvent = { ...event };
  for (const [key, inside] of Object.entries(event)) Reflect.set(copy, key, cut(inside, 1));
  return { ...copy, cut: true };
}

function isTooMuch(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.length > MAX_TEXT;
  if (typeof value !== "object" || value === null) return false;
  return depth >= MAX_DEPTH || Object.values(value).some((inside) => isTooMuch(inside, depth + 1));
}

function cut(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.length > MAX_TEXT ? beginningOf(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((inside) => cut(inside, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, inside]) => [key, cut(inside, depth + 1)]));
}

/** Half a character would be no text any more. */
function beginningOf(text: string): string {
  return text.slice(0, MAX_TEXT).replace(/[\uD800-\uDBFF]$/, "");
}
