import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionQuery, SessionRecord } from "../engine/ports.ts";
import type { SessionRow } from "./rows.ts";

/** Reads lists of sessions in pages, for all storage engines. */

/** Position of a session in a list. */
export interface ListPosition {
  readonly updatedAt: number;
  readonly id: string;
}

/** Orders newest first, equally new sessions by descending id, so that a page can continue after the last session (keyset). */
export function newestFirst(a: ListPosition, b: ListPosition): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}

export interface RestPage {
  readonly limit: number;
  /** Ids of sessions read before. */
  readonly passed: readonly string[];
}

/** Reads on until `limit` readable sessions are found, so that unreadable ones do not count. */
export async function readableSessions(
  limit: number,
  read: (page: RestPage) => Promise<readonly SessionRecord[]>,
): Promise<SessionRecord[]> {
  const found: SessionRecord[] = [];
  for (const passed: string[] = []; found.length < limit;) {
    const page = { limit: limit - found.length, passed };
    const records = await read(page);
    found.push(...records.filter(({ unreadable }) => !unreadable));
    passed.push(...records.map(({ id }) => id));
    if (records.length < page.limit) break;
  }
  return found;
}

/** Rows of a list, and the query for the rest; `undefined` if nothing is left to read. */
export interface ListPart {
  readonly rows: SessionRow[];
  readonly rest: SessionQuery | undefined;
}

/** Reads part by part until the list has its length, because a part may hold no session that the query matches. */
export async function wholeList(
  query: SessionQuery,
  read: (wanted: SessionQuery) => Promise<ListPart & { readonly records: readonly SessionRecord[] }>,
): Promise<SessionRecord[]> {
  const isSought = ({ unreadable }: SessionRecord) => !unreadable || (query.statuses?.includes("error") ?? true);
  const found: SessionRecord[] = [];
  for (let wanted: SessionQuery | undefined = query; wanted;) {
    const part = await read(wanted);
    found.push(...part.records.filter(isSought));
    wanted = restOf(wanted, part, query.limit - found.length);
    if (wanted) await nextTurn();
  }
  return found;
}

function restOf(query: SessionQuery, { rest, rows }: ListPart, limit: number): SessionQuery | undefined {
  const last = rows.at(-1);
  if (limit <= 0) return undefined;
  if (rest) return { ...rest, limit };
  if (!last || rows.length < query.limit) return undefined;
  return { ...query, before: { updatedAt: last.updatedAt, id: last.id }, limit };
}
