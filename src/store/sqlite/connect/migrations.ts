import { z } from "zod";
import { StoreError } from "../../errors.ts";
import type { Connection } from "./connection.ts";

/**
 * Schema, as migration steps: number n makes version n out of n - 1. Never change a released step. A new step only adds
 * (tables, indexes, columns with a default), because servers of several versions use one file at a time. A step that breaks
 * older servers would have to raise `readable_by`.
 *
 * Text written by people is stored as JSON, because one of the two drivers cuts a string at NUL, and UTF-8 has no lone
 * surrogates. JSON escapes both.
 */
export const MIGRATIONS: readonly string[] = [
  `
  PRAGMA application_id = ${String(0x63636d73)};
  CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL);
  INSERT INTO meta VALUES('readable_by', '1');

  -- A process that uses the store, and until when it is taken to be alive.
  CREATE TABLE nodes(
    id TEXT PRIMARY KEY NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, started_at TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Where the process serves HTTP: sessions of the store must not use it as an MCP server.
    urls TEXT);

  -- What each append writes. What queries ask of the state is copied out of it.
  CREATE TABLE sessions(
    id TEXT PRIMARY KEY NOT NULL, principal TEXT NOT NULL, idempotency_key TEXT, cwd TEXT NOT NULL,
    state TEXT NOT NULL, status TEXT NOT NULL, at_work INTEGER NOT NULL, last_event INTEGER NOT NULL, rev INTEGER NOT NULL,
    owner TEXT, epoch INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
  CREATE UNIQUE INDEX sessions_key ON sessions(principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX sessions_newest ON sessions(principal, updated_at DESC, id DESC);
  CREATE INDEX sessions_status ON sessions(principal, status, updated_at DESC, id DESC);
  CREATE INDEX sessions_ended ON sessions(status, updated_at, id);
  CREATE INDEX sessions_owner ON sessions(owner) WHERE owner IS NOT NULL;
  CREATE INDEX sessions_at_work ON sessions(updated_at) WHERE at_work = 1;

  -- What is written seldom and can be long, and the same in lower case for the search.
  CREATE TABLE descriptions(
    session_id TEXT PRIMARY KEY NOT NULL, spec TEXT NOT NULL, title TEXT,
    sought_cwd TEXT NOT NULL, sought_title TEXT, sought_prompt TEXT,
    -- What the operator of the server that made the session allows.
    policy TEXT);

  CREATE TABLE events(
    session_id TEXT NOT NULL, id INTEGER NOT NULL, at INTEGER NOT NULL, type TEXT NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY(session_id, id));

  CREATE TABLE commands(
    n INTEGER PRIMARY KEY, session_id TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, expires_at INTEGER NOT NULL,
    reply TEXT, UNIQUE(session_id, id));
  CREATE INDEX commands_open ON commands(session_id, n) WHERE reply IS NULL;
  CREATE INDEX commands_answered ON commands(session_id, n) WHERE reply IS NOT NULL;

  -- Sessions that are gone and whose logs are still to be cleared away, a piece at a time.
  CREATE TABLE deleted_sessions(id TEXT PRIMARY KEY NOT NULL);

  -- Transcripts of Claude Code that sessions were given by /clear, with those that they have left since: no other session may continue them.
  CREATE TABLE given_transcripts(id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL);
  CREATE INDEX given_transcripts_session ON given_transcripts(session_id);

  -- Small values that all servers share: windows of accounts, budgets of days.
  CREATE TABLE ledger(key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, rev INTEGER NOT NULL, at INTEGER NOT NULL);

  -- Events of all logs that wake callers, in the order of their commits. Written with the event, forgotten after a week.
  INSERT INTO meta VALUES('feed', lower(hex(randomblob(6)))), ('feed_floor', '0');
  CREATE TABLE feed(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, name TEXT NOT NULL, session_id TEXT NOT NULL,
    event_id INTEGER NOT NULL, at INTEGER NOT NULL);
  CREATE INDEX feed_names ON feed(principal, name, seq);

  -- Webhooks that callers have named, and the messages on their way to these and to the operator's.
  CREATE TABLE subscriptions(
    id TEXT PRIMARY KEY NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL, session_id TEXT, cwd TEXT, url TEXT NOT NULL,
    secret TEXT NOT NULL, former TEXT, former_until INTEGER, expires_at INTEGER NOT NULL, delivered_at INTEGER,
    failed_since INTEGER, fault TEXT);
  CREATE INDEX subscriptions_names ON subscriptions(principal, name);
  CREATE TABLE deliveries(
    n INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    event_id INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER, node TEXT, attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0, until INTEGER NOT NULL, UNIQUE(target, message_id));
  CREATE INDEX deliveries_due ON deliveries(due_at);
  CREATE INDEX deliveries_waiting ON deliveries(target, seq);
  `,
];

const APPLICATION_ID = 0x63636d73;

const Header = z.object({ application_id: z.int(), user_version: z.int(), tables: z.int() });
const Meta = z.object({ value: z.coerce.number() });

const sql = {
  header: `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) AS tables
    FROM pragma_application_id, pragma_user_version`,
  readableBy: "SELECT value FROM meta WHERE key = 'readable_by'",
} as const;

/** Throws `StoreError` if the file is another program's, or has a version that this server must not touch. */
export function checkSchema(db: Connection, file: string, migrations = MIGRATIONS): void {
  const { application_id, tables, user_version } = readHeader(db);
  if (tables > 0 && application_id !== APPLICATION_ID) throw new StoreError("foreign", file);
  if (user_version > 0) checkReadable(db, file, migrations);
}

/** Checks the version of a file in use: a newer server may have migrated the file meanwhile. */
export function checkReadable(db: Connection, file: string, migrations = MIGRATIONS): void {
  const readableBy = db.get(sql.readableBy, Meta)?.value ?? Number.POSITIVE_INFINITY;
  if (readableBy > migrations.length) throw new StoreError("newer", file);
}

/** Migrates the schema. Safe when several processes migrate at the same time. */
export function migrate(db: Connection, migrations = MIGRATIONS): void {
  if (readHeader(db).user_version >= migrations.length) return;
  db.transaction("full", () => {
    // Reads again: another process may have been faster.
    const { user_version } = readHeader(db);
    for (const step of migrations.slice(user_version)) db.execute(step);
    if (user_version < migrations.length) db.execute(`PRAGMA user_version = ${String(migrations.length)}`);
  });
}

function readHeader(db: Connection): z.infer<typeof Header> {
  return Header.parse(db.get(sql.header, Header));
}
