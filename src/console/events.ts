import type { StoredEvent } from "../domain/event.ts";
import type { ShownEvent } from "./wire.ts";

/** Events as the page gets them: a log may hold texts of megabytes, of which nobody reads more than the beginning. */

/** Characters of one text. */
const TEXT_MOST = 10_000;

export function shownEvent(event: StoredEvent): ShownEvent {
  if (!hasLong(event)) return event;
  const copy = structuredClone(event);
  cutTexts(copy);
  return { ...copy, cut: true };
}

function hasLong(value: unknown): boolean {
  if (typeof value === "string") return value.length > TEXT_MOST;
  return typeof value === "object" && value !== null && Object.values(value).some(hasLong);
}

/** In place. */
function cutTexts(value: object): void {
  for (const [key, inside] of Object.entries<unknown>({ ...value })) {
    if (typeof inside === "string" && inside.length > TEXT_MOST) Reflect.set(value, key, beginningOf(inside));
    if (typeof inside === "object" && inside !== null) cutTexts(inside);
  }
}

/** Half a character would be no text any more. */
function beginningOf(text: string): string {
  return text.slice(0, TEXT_MOST).replace(/[\uD800-\uDBFF]$/, "");
}
