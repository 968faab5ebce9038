import type { SessionRow } from "../../../src/console/wire.ts";
import { matchesRow, type Filters } from "./filters.ts";

type Rows = readonly SessionRow[];

/**
 * Merges `changed` into `rows`, newest first, without rows that no longer match. With `hold`, rows keep their places, because
 * the user is about to click. New rows are added only without a search text, which only the server can match.
 */
export function merge(rows: Rows, changed: Rows, { filters, hold }: { filters: Filters; hold: boolean }): Rows {
  const all = new Map(rows.map((row) => [row.id, row]));
  for (const row of changed) {
    const old = all.get(row.id);
    if (old && old.lastEventId > row.lastEventId) continue;
    if (!matchesRow(filters, row)) all.delete(row.id);
    else if (old || filters.text === "") all.set(row.id, row);
  }
  if (!hold) return newestFirst([...all.values()]);
  const known = new Set(rows.map(({ id }) => id));
  const [there, come] = [
    [...all.values()].filter(({ id }) => known.has(id)),
    [...all.values()].filter(({ id }) => !known.has(id)),
  ];
  return [...newestFirst(come), ...there];
}

/**
 * Appends older `rows` to a reloaded first page. Returns the page alone if no row is unchanged in both, because sessions
 * between both may be missing.
 */
export function rejoin(page: { readonly sessions: Rows; readonly next?: string }, rows: Rows): Rows {
  const last = page.sessions.at(-1);
  if (!last || page.next === undefined) return page.sessions;
  const knownAt = new Map(rows.map(({ id, updatedAt }) => [id, updatedAt]));
  if (!page.sessions.some(({ id, updatedAt }) => knownAt.get(id) === updatedAt)) return page.sessions;
  const isThere = new Set(page.sessions.map(({ id }) => id));
  return [...page.sessions, ...rows.filter((row) => !isThere.has(row.id) && order(last, row) < 0)];
}

export function newestFirst(rows: Rows): Rows {
  return rows.toSorted(order);
}

function order(a: SessionRow, b: SessionRow): number {
  return b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1);
}
