import { APPEND_FUNCTIONS } from "./schema-append.ts";
import { FEED_TABLES } from "./schema-feed.ts";
import { LEASE_FUNCTIONS } from "./schema-leases.ts";
import { MACHINE_TABLES } from "./schema-machines.ts";

/**
 * Schema, as migration steps: number n makes version n out of n - 1. Never change a released step. A new step only adds (tables,
 * indexes, columns with a default, functions), because servers of several versions use one database at a time. A step that
 * breaks older servers would have to raise `readable_by`.
 *
 * Text is compared by bytes (`COLLATE "C"`), as in SQLite. JSON is kept as text, because `jsonb` refuses NUL and lone
 * surrogates, which output of tools contains.
 */
export const STEPS: readonly string[] = [
  `
  INSERT INTO meta VALUES('readable_by', '1');

  -- Clock of all leases and time limits, ms since the epoch.
  CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

  -- A server that uses the store, and until when it is taken to be alive.
  CREATE TABLE nodes(
    id text COLLATE "C" PRIMARY KEY, host text COLLATE "C" NOT NULL, pid bigint NOT NULL, started_at text NOT NULL,
    ttl_ms bigint NOT NULL, renewed_at bigint NOT NULL, expires_at bigint NOT NULL,
    -- Where the process serves HTTP: sessions of the store must not use it as an MCP server.
    urls text,
    -- What the node tells the other machines about itself, as JSON; null for a command, which runs no sessions.
    facts text, name text COLLATE "C") WITH (fillfactor = 50);

  -- What each append writes. What queries ask of the state is copied out of it. An append of messages changes no indexed
  -- column, so that the row stays on its page and no index grows (HOT): lists read listed_at, which lags behind updated_at.
  CREATE TABLE sessions(
    id text COLLATE "C" PRIMARY KEY, principal text COLLATE "C" NOT NULL, idempotency_key text COLLATE "C",
    cwd text COLLATE "C" NOT NULL, state text NOT NULL, status text COLLATE "C" NOT NULL, at_work integer NOT NULL,
    last_event bigint NOT NULL, rev bigint NOT NULL, owner text COLLATE "C", epoch bigint NOT NULL,
    created_at bigint NOT NULL, updated_at bigint NOT NULL, listed_at bigint NOT NULL,
    -- Identifies the last write, so that a repetition after a lost connection finds out that it was stored.
    last_write text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    -- Nodes that may run the session, as JSON; 1 while its turn waits for one of them; true while nodes may claim it.
    place text COLLATE "C", waits integer NOT NULL DEFAULT 0, offered boolean NOT NULL DEFAULT false)
    WITH (fillfactor = 50);
  ALTER TABLE sessions ALTER state SET STORAGE MAIN;
  CREATE UNIQUE INDEX sessions_key ON sessions(principal, md5(idempotency_key)) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX sessions_newest ON sessions(principal, listed_at);
  CREATE INDEX sessions_status ON sessions(principal, status, listed_at);
  CREATE INDEX sessions_ended ON sessions(status, listed_at);
  CREATE INDEX sessions_owner ON sessions(owner) WHERE owner IS NOT NULL;
  CREATE INDEX sessions_at_work ON sessions(owner) WHERE at_work = 1;
  CREATE INDEX sessions_offered ON sessions(place) WHERE offered;

  -- What is written seldom and can be long, and the same in lower case for the search.
  CREATE TABLE descriptions(
    session_id text COLLATE "C" PRIMARY KEY, spec text NOT NULL, title text,
    sought_cwd text COLLATE "C" NOT NULL, sought_title text COLLATE "C", sought_prompt text COLLATE "C",
    -- What the operator of the server that made the session allows.
    policy text);

  CREATE TABLE events(
    session_id text COLLATE "C" NOT NULL, id bigint NOT NULL, at bigint NOT NULL, type text COLLATE "C" NOT NULL,
    event text NOT NULL, PRIMARY KEY(session_id, id));

  CREATE TABLE commands(
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    data text NOT NULL, expires_at bigint NOT NULL, reply text, UNIQUE(session_id, id));
  CREATE INDEX commands_open ON commands(session_id, n) WHERE reply IS NULL;
  CREATE INDEX commands_answered ON commands(session_id, n) WHERE reply IS NOT NULL;

  -- Sessions that are gone and whose logs are still to be cleared away, a piece at a time.
  CREATE TABLE deleted_sessions(id text COLLATE "C" PRIMARY KEY);

  -- Transcripts of Claude Code that sessions were given by /clear, with those that they have left since: no other session may continue them.
  CREATE TABLE given_transcripts(id text COLLATE "C" PRIMARY KEY, session_id text COLLATE "C" NOT NULL);
  CREATE INDEX given_transcripts_session ON given_transcripts(session_id);

  -- Small values that all servers share: windows of accounts, budgets of days.
  CREATE TABLE ledger(key text COLLATE "C" PRIMARY KEY, value text NOT NULL, rev bigint NOT NULL, at bigint NOT NULL)
    WITH (fillfactor = 50);
  ${MACHINE_TABLES}
  ${FEED_TABLES}
  ${LEASE_FUNCTIONS}
  ${APPEND_FUNCTIONS}
  `,
];
