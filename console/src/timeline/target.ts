import { createContext } from "preact";
import type { Item } from "./reducer/item.ts";

/** Where the page's address leads. */
export interface Target {
  readonly item: Item;
  /** Keys of the calls that it is within: what their subagents do is opened for it. */
  readonly within: ReadonlySet<string>;
}

/** The item that the event began, wherever it is; or the last of the session's own before it. */
export function targetOf(items: readonly Item[], eventId: number): Target | undefined {
  const exact = find(items, eventId, []);
  if (exact) return exact;
  const before = items.findLast((item) => item.eventId <= eventId);
  return before && { item: before, within: new Set() };
}

function find(items: readonly Item[], eventId: number, within: readonly string[]): Target | undefined {
  for (const item of items) {
    if (item.eventId === eventId) return { item, within: new Set(within) };
    const inside = item.kind === "call" ? find(item.children, eventId, [...within, item.key]) : undefined;
    if (inside) return inside;
  }
  return undefined;
}

/** For what stands in a timeline. */
export const TargetContext = createContext<Target | undefined>(undefined);
