import { randomUUID } from "node:crypto";
import { z } from "zod";
import { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { ConflictError, type NewSession, type SessionCounts } from "../../engine/ports.ts";
import type { Principal } from "../../domain/principal.ts";
import { ActiveHead } from "../active-sessions.ts";
import { OPTIONS } from "../format.ts";
import type { RestPage } from "../listing.ts";
import { PrincipalRow, SessionRow } from "../rows.ts";
import { jsonText, newSessionTexts, searchText } from "../texts.ts";
import { type Database, VERSION } from "./connect/database.ts";
import { type PlaceColumns, placeText } from "./node-table.ts";

/** Expiry of a lease: null once the lease has run out, judged by the clock of the database. */
const EXPIRY = `CASE WHEN n.expires_at > now_ms() THEN n.expires_at END AS "expiresAt"`;

export const SELECT = `SELECT s.id, s.principal, s.cwd, s.state, s.status, s.at_work AS "atWork", s.last_event AS "lastEvent",
    s.created_at AS "createdAt", s.updated_at AS "updatedAt", s.rev, d.spec, d.policy, d.title, s.place,
    s.owner AS "nodeId", n.name AS "nodeName", n.host, n.pid, n.started_at AS "startedAt", ${EXPIRY}
  FROM sessions s LEFT JOIN descriptions d ON d.session_id = s.id LEFT JOIN nodes n ON n.id = s.owner`;

const sql = {
  byIds: `${SELECT} WHERE s.id = ANY($1::text[])`,
  byTranscript: `${SELECT} WHERE s.id = coalesce((SELECT id FROM sessions WHERE id = $1),
    (SELECT session_id FROM given_transcripts WHERE id = $1))`,
  principal: "SELECT principal FROM sessions WHERE id = $1",
  // Goes from one principal to the next along the index, past their sessions.
  principals: `WITH RECURSIVE each(principal) AS (
      SELECT min(principal) FROM sessions
      UNION ALL SELECT (SELECT min(s.principal) FROM sessions s WHERE s.principal > each.principal) FROM each
        WHERE each.principal IS NOT NULL)
    SELECT principal FROM each WHERE principal IS NOT NULL`,
  // $4 and $5: places and labels of this node; $6 and $7: of all other living nodes.
  abandoned: `${SELECT} WHERE s.at_work = 1 AND (s.owner IS NULL OR s.owner = ANY($1::text[]))
      AND s.id <> ALL($2::text[])
      AND (s.place IS NULL OR s.place = ANY($4::text[]) OR has_labels(s.place, $5::text[])
        OR (s.waits = 0 AND s.place <> ALL($6::text[]) AND NOT has_labels(s.place, $7::text[])))
    ORDER BY s.updated_at LIMIT $3`,
  settle: `UPDATE sessions SET status = 'error', at_work = 0
    WHERE id = $1 AND rev = $2 AND owner IS NOT DISTINCT FROM $3`,
  raw: `SELECT s.*, d.spec, d.policy, d.title FROM sessions s LEFT JOIN descriptions d ON d.session_id = s.id
    WHERE s.id = $1`,
  count: "SELECT status, count(*) AS number FROM sessions GROUP BY status",
  create: "SELECT id, created FROM create_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
  update: `WITH touched AS (
      UPDATE sessions SET rev = rev + 1, cwd = coalesce($3, cwd) WHERE id = $1 AND rev = $2 RETURNING id),
    described AS (
      UPDATE descriptions SET title = coalesce($4, title), sought_title = coalesce($5, sought_title),
        spec = coalesce($6, spec), sought_cwd = coalesce($7, sought_cwd)
      WHERE session_id = (SELECT id FROM touched))
    SELECT id FROM touched`,
  heads: `SELECT id, rev, created_at AS "createdAt", owner AS "nodeId" FROM sessions
    WHERE at_work = 1 AND owner = ANY($1::text[])`,
} as const;

export async function findSessions(db: Database, ids: readonly string[]): Promise<SessionRow[]> {
  return db.all(sql.byIds, SessionRow, [ids]);
}

export async function findSession(db: Database, id: string): Promise<SessionRow | undefined> {
  return (await findSessions(db, [id]))[0];
}

export async function findByTranscript(db: Database, transcriptId: string): Promise<SessionRow | undefined> {
  return db.get(sql.byTranscript, SessionRow, [transcriptId]);
}

export async function findOwnPrincipal(db: Database, id: string): Promise<Principal | undefined> {
  return (await db.get(sql.principal, PrincipalRow, [id]))?.principal;
}

/** Leaves out a principal that is not readable text, as no query can name it. */
export async function readPrincipals(db: Database): Promise<Principal[]> {
  const rows = await db.all(sql.principals, PrincipalRow);
  return rows.flatMap(({ principal = "" }) => (principal === "" ? [] : [principal]));
}

interface AbandonedQuery extends RestPage {
  /** Ids of dead nodes. */
  readonly dead: readonly string[];
  /** This node and all other living nodes, as far as they begin turns. */
  readonly here: PlaceColumns;
  readonly others: PlaceColumns;
}

/**
 * Returns sessions at work that no node owns, or a dead one: those whose place this node has, and those whose place no living
 * node has and that do not wait for it yet.
 */
export async function findAbandoned(db: Database, query: AbandonedQuery): Promise<SessionRow[]> {
  const { dead, here, limit, others, passed } = query;
  const places = [here.places, here.labels, others.places, others.labels];
  return db.all(sql.abandoned, SessionRow, [dead, passed, limit, ...places]);
}

/**
 * Sets the columns that follow from the state for a session with an unreadable state: filters, counts and the search for
 * abandoned sessions then treat the session as failed. `rev` stays, because nothing else changes.
 */
export async function settleSession(db: Database, { id, nodeId, rev }: SessionRow): Promise<void> {
  await db.run(sql.settle, [id, rev, nodeId], { attempts: 1 });
}

/** Returns the stored columns of a session, without parsing any. */
export async function readRaw(db: Database, id: string): Promise<JsonObject | undefined> {
  return db.get(sql.raw, JsonObject, [id]);
}

const CountRow = z.object({ status: z.string(), number: z.int() });

/** Counts sessions by status, including statuses of a newer server. */
export async function countByStatus(db: Database): Promise<SessionCounts> {
  const rows = await db.all(sql.count, CountRow);
  return Object.fromEntries(rows.map(({ number, status }) => [status, number]));
}

const Created = z.object({ id: z.string().nullable(), created: z.boolean().nullable() });
/** Bytes of a session besides its texts. */
const ROW_BYTES = 500;

/** Makes the texts before the first wait, because the caller may go on to change the session. */
export async function createSession(db: Database, session: NewSession): Promise<{ row: SessionRow; created: boolean }> {
  const { columns, description } = newSessionTexts(session);
  const { at, atWork, cwd, id, key, principal, state, status } = columns;
  const { policy, soughtCwd, spec } = description;
  const place = session.place === undefined ? null : placeText(session.place);
  const bytes = ROW_BYTES + state.length + spec.length;
  const head = [VERSION, randomUUID(), id, principal, key, cwd, state, status, atWork, at, bytes, place];
  const made = await db.get(sql.create, Created, [...head, spec, policy, soughtCwd]);
  const row = await findSession(db, made?.id ?? id);
  if (!row) throw new Error(`session ${id} was deleted while it was created`);
  return { row, created: made?.created === true };
}

/** Throws `ConflictError` if the session is no longer at `rev`. */
export async function updateSession(
  db: Database,
  { id, patch, rev }: { id: string; rev: number; patch: { title?: string; spec?: SessionOptions } },
): Promise<SessionRow> {
  const { spec, title } = patch;
  const names = title === undefined ? [null, null] : [jsonText(title), searchText(title)];
  const options = spec ? [OPTIONS.write(spec), searchText(spec.cwd)] : [null, null];
  const values = [id, rev, spec ? jsonText(spec.cwd) : null, ...names, ...options];
  const [touched] = await db.all(sql.update, z.object({ id: z.string() }), values, { isRepeatable: false });
  const row = touched && (await findSession(db, id));
  if (!row) throw new ConflictError(`session ${id} has changed since it was read`);
  return row;
}

/** Returns the heads of sessions at work of the nodes `owners`. */
export async function readActiveHeads(db: Database, owners: readonly string[]): Promise<ActiveHead[]> {
  return db.all(sql.heads, ActiveHead, [owners]);
}
