import { z } from "zod";
import type { EventType, StoredEvent } from "../../domain/event.ts";
import { EventRow } from "../rows.ts";
import type { Database } from "./connect/database.ts";

const PAGE = "session_id = $1 AND id >= $2";
const COLUMNS = "id, at, type, event";

const sql = {
  read: `SELECT ${COLUMNS} FROM events WHERE ${PAGE} ORDER BY id LIMIT $3`,
  readTypes: `SELECT ${COLUMNS} FROM events WHERE ${PAGE} AND type = ANY($4::text[]) ORDER BY id LIMIT $3`,
  follow: `SELECT e.id, e.at, e.type, e.event FROM (SELECT 1 FROM sessions WHERE id = $1) s
    LEFT JOIN LATERAL (SELECT ${COLUMNS} FROM events WHERE ${PAGE} ORDER BY id LIMIT $3) e ON true`,
} as const;

export interface Page {
  readonly from: number;
  readonly limit: number;
}

export async function readLog(
  db: Database,
  sessionId: string,
  { from, limit }: Page,
  types?: readonly EventType[],
): Promise<StoredEvent[]> {
  const page = [sessionId, Math.max(from, 1), limit];
  return types ? db.all(sql.readTypes, EventRow, [...page, types]) : db.all(sql.read, EventRow, page);
}

/** A session without further events has one row of nulls. */
const Followed = z.union([EventRow, z.object({ id: z.null() }).transform(() => undefined)]);

/** Returns `undefined` if there is no session any more. */
export async function followLog(
  db: Database,
  sessionId: string,
  { from, limit }: Page,
): Promise<StoredEvent[] | undefined> {
  const rows = await db.all(sql.follow, Followed, [sessionId, Math.max(from, 1), limit], { patience: "reader" });
  return rows.length === 0 ? undefined : rows.filter((row) => row !== undefined);
}
