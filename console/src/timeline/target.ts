import { createContext } from "preact";
import type { Item } from "./reducer/item.ts";

/** Item to which `eventId` of the address leads. */
export interface Target {
  readonly item: Item;
  /** Keys of the calls around the item; the steps of their subagents are opened. */
  readonly within: ReadonlySet<string>;
}

/** Finds the item that began with the event, at any depth; otherwise the last top-level item before the event. */
export function findTarget(items: readonly Item[], eventId: number): Target | undefined {
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

/** Gives the items of a timeline access to the target. */
export const TargetContext = createContext<Target | undefined>(undefined);
