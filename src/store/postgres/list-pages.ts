import { z } from "zod";
import type { SessionQuery } from "../../engine/ports.ts";
import type { ListPart } from "../listing.ts";
import { SessionRow } from "../rows.ts";
import { jsonText, searchText } from "../texts.ts";
import type { Database, Value } from "./connect/database.ts";
import { LIST_LAG_MS } from "./connect/schema-leases.ts";
import { SELECT } from "./session-table.ts";

/**
 * Lists of sessions, newest first. The indexes have `listed_at`, which lags behind `updated_at` by less than `LIST_LAG_MS`: a
 * page is sought among the sessions that may be as new as the last of as many by `listed_at`.
 */

/** Sessions to go through at a time, if a text or a folder is sought: no index helps. */
const PART_SIZE = 1000;
const NEWEST = Number.MAX_SAFE_INTEGER;

const MENTIONS = ["title", "cwd", "prompt"]
  .map((field) => `position($7 IN coalesce(d.sought_${field}, '')) > 0`)
  .join(" OR ");

/** $1 principal, $2 and $3 position of the last session before, $4 time of the oldest, $5 number, $6 lower bound of a part. */
const PAGE = "s.principal = $1 AND s.listed_at <= $2 AND (s.updated_at, s.id) < ($2, $3) AND s.updated_at >= $4";
const NEWEST_FIRST = "s.updated_at DESC, s.id DESC";

/** Ids of a page; `which` adds a condition. */
const pageIds = (which: string): string => `SELECT s.id, s.updated_at FROM sessions s,
    (SELECT CASE WHEN count(*) < $5 THEN 0 ELSE min(listed_at) END - ${String(LIST_LAG_MS)} AS edge
      FROM (SELECT s.listed_at FROM sessions s WHERE ${PAGE}${which} ORDER BY s.listed_at DESC LIMIT $5) newest) e
  WHERE ${PAGE}${which} AND s.listed_at > e.edge ORDER BY ${NEWEST_FIRST} LIMIT $5`;

const whole = (ids: string): string =>
  `${SELECT} JOIN (${ids}) page ON page.id = s.id ORDER BY ${NEWEST_FIRST} LIMIT $5`;

const part = (which: string): string => `${SELECT} WHERE ${PAGE}${which}
  AND s.listed_at > $4 - ${String(LIST_LAG_MS)} AND ($6::text IS NULL OR s.cwd = $6) AND ($7::text IS NULL OR ${MENTIONS})
  ORDER BY ${NEWEST_FIRST} LIMIT $5`;

const sql = {
  all: whole(pageIds("")),
  // Reads each status along its own index and no further than the page, so that a rare status is found at once.
  ofStatuses: whole(
    `SELECT p.* FROM unnest($6::text[]) AS sought(status), LATERAL (${pageIds(" AND s.status = sought.status")}) p`,
  ),
  part: part(""),
  partOfStatuses: part(" AND s.status = ANY($8::text[])"),
  lastOfPart: `SELECT listed_at AS "listedAt" FROM sessions WHERE principal = $1 AND listed_at <= $2
    ORDER BY listed_at DESC OFFSET ${String(PART_SIZE - 1)} LIMIT 1`,
} as const;

export async function readList(db: Database, query: SessionQuery): Promise<ListPart> {
  if (query.text !== undefined || query.cwd !== undefined) return readPart(db, query);
  const { statuses } = query;
  const values = pageValues(query);
  if (!statuses) return { rows: await db.all(sql.all, SessionRow, values), rest: undefined };
  return { rows: await db.all(sql.ofStatuses, SessionRow, [...values, [...new Set(statuses)]]), rest: undefined };
}

function pageValues({ before, limit, principal, since = 0 }: SessionQuery): Value[] {
  const { id, updatedAt } = before ?? { id: "", updatedAt: NEWEST };
  return [jsonText(principal), updatedAt, id, since, limit];
}

const LastOfPart = z.object({ listedAt: z.int() });

/** Goes through a part of the list, so that a search among many sessions takes no long statement. */
async function readPart(db: Database, query: SessionQuery): Promise<ListPart> {
  const { cwd, limit, since = 0, statuses, text } = query;
  const end = await endOfPart(db, query);
  const isLast = end === undefined || end <= since;
  const sought = [cwd === undefined ? null : jsonText(cwd), text === undefined ? null : searchText(text)];
  const values = [...pageValues({ ...query, since: isLast ? since : end }), ...sought];
  const rows = statuses
    ? await db.all(sql.partOfStatuses, SessionRow, [...values, [...new Set(statuses)]])
    : await db.all(sql.part, SessionRow, values);
  const missing = limit - rows.length;
  if (isLast || missing <= 0) return { rows, rest: undefined };
  return { rows, rest: { ...query, before: { updatedAt: end, id: "" }, limit: missing } };
}

/** Returns the time of the oldest session in a part; `undefined` if the part is the rest of the list. */
async function endOfPart(db: Database, { before, principal }: SessionQuery): Promise<number | undefined> {
  const at = before?.updatedAt ?? NEWEST;
  const last = await db.get(sql.lastOfPart, LastOfPart, [jsonText(principal), at]);
  return last && Math.min(last.listedAt + LIST_LAG_MS, at - LIST_LAG_MS);
}
