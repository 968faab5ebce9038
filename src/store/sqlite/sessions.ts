import { z } from "zod";
import { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  ConflictError,
  type NewSession,
  type SessionCounts,
  type SessionQuery,
  type SessionRecord,
} from "../../engine/ports.ts";
import { type ActiveSessionCache, ActiveHead } from "../active-sessions.ts";
import { OPTIONS } from "../format.ts";
import { type ListPart, type ListPosition, newestFirst, type RestPage } from "../listing.ts";
import { PrincipalRow, SessionRow } from "../rows.ts";
import { jsonText, newSessionTexts, searchText } from "../texts.ts";
import type { Connection } from "./connect/connection.ts";
import type { SqlValue } from "./connect/driver.ts";

const select = `SELECT s.id, s.principal, s.cwd, s.state, s.status, s.at_work AS "atWork", s.last_event AS "lastEvent",
    s.created_at AS "createdAt", s.updated_at AS "updatedAt", s.rev, d.spec, d.policy, d.title,
    s.owner AS "nodeId", n.host, n.pid, n.started_at AS "startedAt", n.expires_at AS "expiresAt"
  FROM sessions s LEFT JOIN descriptions d ON d.session_id = s.id LEFT JOIN nodes n ON n.id = s.owner`;

/** Leaves out a session whose id is not text: only another program writes such ids, and no call can name one. */
const sql = {
  byId: `${select} WHERE s.id = $id`,
  byTranscript: `${select} WHERE s.id = (SELECT session_id FROM given_transcripts WHERE id = $id)`,
  byKey: `${select} WHERE s.principal = $principal AND s.idempotency_key = $key`,
  lastOfPart: `SELECT updated_at AS "updatedAt", id FROM sessions
    WHERE principal = $principal AND typeof(id) = 'text' AND (updated_at, id) < ($at, $id)
    ORDER BY updated_at DESC, id DESC LIMIT 1 OFFSET $part`,
  exists: "SELECT id FROM sessions WHERE id = $id",
  principal: "SELECT principal FROM sessions WHERE id = $id",
  principals: "SELECT DISTINCT principal FROM sessions",
  abandoned: `${select} WHERE s.at_work = 1 AND typeof(s.id) = 'text' AND (s.owner IS NULL OR s.owner NOT IN (SELECT value FROM json_each($living)))
      AND s.id NOT IN (SELECT value FROM json_each($passed))
    ORDER BY s.updated_at LIMIT $limit`,
  settle: "UPDATE sessions SET status = 'error', at_work = 0 WHERE id = $id AND rev = $rev AND owner IS $owner",
  raw: `SELECT s.*, d.spec, d.policy, d.title FROM sessions s LEFT JOIN descriptions d ON d.session_id = s.id WHERE s.id = $id`,
  count: "SELECT status, count(*) AS number FROM sessions GROUP BY status",
  insert: `INSERT INTO sessions(id, principal, idempotency_key, cwd, state, status, at_work,
      last_event, rev, epoch, created_at, updated_at)
    VALUES($id, $principal, $key, $cwd, $state, $status, $atWork, 0, 1, 0, $at, $at)`,
  describe: "INSERT INTO descriptions(session_id, spec, policy, sought_cwd) VALUES($id, $spec, $policy, $soughtCwd)",
  touch: "UPDATE sessions SET rev = rev + 1 WHERE id = $id AND rev = $rev",
  setTitle: "UPDATE descriptions SET title = $title, sought_title = $soughtTitle WHERE session_id = $id",
  setSpec: "UPDATE descriptions SET spec = $spec, sought_cwd = $soughtCwd WHERE session_id = $id",
  setCwd: "UPDATE sessions SET cwd = $cwd WHERE id = $id",
  heads: `SELECT id, rev, created_at AS "createdAt", owner AS "nodeId" FROM sessions
    WHERE at_work = 1 AND typeof(id) = 'text' AND owner IN (SELECT value FROM json_each($living))`,
} as const;

const PlaceRow = z.object({ updatedAt: z.int(), id: z.string() });

/** Sessions to go through at a time, in a few milliseconds. */
const PART_SIZE = 1000;

export function getSession(db: Connection, id: string): SessionRow | undefined {
  return db.get(sql.byId, SessionRow, { id });
}

export function findHolder(db: Connection, transcriptId: string): SessionRow | undefined {
  return getSession(db, transcriptId) ?? db.get(sql.byTranscript, SessionRow, { id: transcriptId });
}

export function findPrincipal(db: Connection, id: string): string | undefined {
  return db.get(sql.principal, PrincipalRow, { id })?.principal;
}

export function hasSession(db: Connection, id: string): boolean {
  return db.get(sql.exists, z.unknown(), { id }) !== undefined;
}

/** Returns sessions at work that no living node owns. */
export function abandonedSessions(
  db: Connection,
  { limit, living, passed }: RestPage & { readonly living: readonly string[] },
): SessionRow[] {
  return db.all(sql.abandoned, SessionRow, { living: JSON.stringify(living), passed: JSON.stringify(passed), limit });
}

/**
 * Sets the columns that follow from the state for a session with an unreadable state: filters, counts and the search for
 * abandoned sessions then treat the session as failed. `rev` stays, because nothing else changes.
 */
export function settleUnreadable(db: Connection, { id, nodeId, rev }: SessionRow): void {
  db.run(sql.settle, { id, rev, owner: nodeId });
}

/** Returns the stored columns of a session, without parsing any. */
export function rawSession(db: Connection, id: string): JsonObject | undefined {
  return db.get(sql.raw, JsonObject, { id });
}

const CountRow = z.object({ status: z.string(), number: z.int() });

/** Counts sessions by status, including statuses of a newer server. */
export function countSessions(db: Connection): SessionCounts {
  return Object.fromEntries(db.all(sql.count, CountRow, {}).map(({ number, status }) => [status, number]));
}

/** Leaves out a principal that is not readable text, as no query can name it. */
export function allPrincipals(db: Connection): Principal[] {
  return db
    .all(sql.principals, PrincipalRow, {})
    .flatMap(({ principal = "" }) => (principal === "" ? [] : [principal]));
}

/** Makes the text of a session now, although the returned function runs later: the caller may go on to change the session. */
export function prepareCreate(session: NewSession): (db: Connection) => { row: SessionRow; created: boolean } {
  const { columns, description } = newSessionTexts(session);
  const { id, key, principal } = columns;
  return (db) => {
    const known = getSession(db, id) ?? (key === null ? undefined : db.get(sql.byKey, SessionRow, { principal, key }));
    if (known) return { row: known, created: false };
    db.run(sql.insert, columns);
    db.run(sql.describe, description);
    return { row: readBack(db, id), created: true };
  };
}

/** Makes the texts now. The returned function throws `ConflictError` if the session is no longer at `rev`. */
export function prepareUpdate(id: string, rev: number, patch: { title?: string; spec?: SessionOptions }) {
  const { spec, title } = patch;
  const newSpec = spec && { cwd: jsonText(spec.cwd), spec: OPTIONS.write(spec), soughtCwd: searchText(spec.cwd) };
  return (db: Connection): SessionRow => {
    if (db.run(sql.touch, { id, rev }) === 0) throw new ConflictError(`session ${id} has changed since it was read`);
    if (title !== undefined) db.run(sql.setTitle, { id, title: jsonText(title), soughtTitle: searchText(title) });
    if (newSpec) {
      db.run(sql.setSpec, { id, spec: newSpec.spec, soughtCwd: newSpec.soughtCwd });
      db.run(sql.setCwd, { id, cwd: newSpec.cwd });
    }
    return readBack(db, id);
  };
}

function readBack(db: Connection, id: string): SessionRow {
  const row = getSession(db, id);
  if (!row) throw new Error(`session ${id} is not there although it was just written`);
  return row;
}

/**
 * Reads each status along its own index and no further than the page, so that a rare status is found at once. No index helps
 * with a text or a folder: the list is gone through a part at a time, so that a search holds up no other work.
 */
export function listPart(db: Connection, query: SessionQuery): ListPart {
  const statuses = query.statuses && [...new Set(query.statuses)];
  return db.snapshot(() => {
    const last = query.text === undefined && query.cwd === undefined ? undefined : lastOfPart(db, query);
    const pages = (statuses ?? [undefined]).map((status) => readPage(db, { ...query, last }, status));
    const rows = pages.flat().toSorted(newestFirst).slice(0, query.limit);
    const missing = query.limit - rows.length;
    return { rows, rest: last && missing > 0 ? { ...query, before: last, limit: missing } : undefined };
  });
}

function lastOfPart(db: Connection, { before, principal, since }: SessionQuery): ListPosition | undefined {
  const { id, updatedAt: at } = before ?? { id: "", updatedAt: Number.MAX_SAFE_INTEGER };
  const last = db.get(sql.lastOfPart, PlaceRow, { principal: jsonText(principal), at, id, part: PART_SIZE - 1 });
  return last && last.updatedAt < (since ?? 0) ? undefined : last;
}

function readPage(
  db: Connection,
  query: SessionQuery & { last: ListPosition | undefined },
  status: string | undefined,
): SessionRow[] {
  const { before, cwd, last, limit, principal, since, text } = query;
  const where = ["s.principal = $principal", "typeof(s.id) = 'text'"];
  const values: Record<string, SqlValue> = { principal: jsonText(principal), limit };
  const filter = (condition: string, over: Record<string, SqlValue>): void => {
    where.push(condition);
    Object.assign(values, over);
  };
  if (status !== undefined) filter("s.status = $status", { status });
  if (cwd !== undefined) filter("s.cwd = $cwd", { cwd: jsonText(cwd) });
  if (since !== undefined) filter("s.updated_at >= $since", { since });
  if (before) filter("(s.updated_at, s.id) < ($at, $id)", { at: before.updatedAt, id: before.id });
  if (last) filter("(s.updated_at, s.id) >= ($lastAt, $lastId)", { lastAt: last.updatedAt, lastId: last.id });
  if (text !== undefined) filter(`(${MENTIONS})`, { text: searchText(text) });
  const order = "ORDER BY s.updated_at DESC, s.id DESC LIMIT $limit";
  return db.all(`${select} WHERE ${where.join(" AND ")} ${order}`, SessionRow, values);
}

const MENTIONS = ["title", "cwd", "prompt"].map((field) => `instr(d.sought_${field}, $text) > 0`).join(" OR ");

/** Returns the sessions at work of living nodes. Reads only those that have changed since the last call. */
export function activeSessions(db: Connection, known: ActiveSessionCache, living: readonly string[]): SessionRecord[] {
  return db.snapshot(() => {
    const heads = db.all(sql.heads, ActiveHead, { living: JSON.stringify(living) });
    return known.update(
      heads,
      known.changed(heads).flatMap(({ id }) => getSession(db, id) ?? []),
    );
  });
}
