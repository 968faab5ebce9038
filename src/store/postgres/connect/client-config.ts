import { userInfo } from "node:os";
import type * as Postgres from "pg";
import type { ClientBase, ClientConfig, QueryConfig } from "pg";
import { z } from "zod";
import { POSTGRES_PACKAGE } from "../../../packages/pinned.ts";
import { StoreError } from "../../errors.ts";
import { loadPackage } from "../../installed-package.ts";
import { type DatabaseLocation, findPassword, readTarget, type Target, tlsOptions } from "./target.ts";

/** Connections to a database: terms that never come from the environment. */

type Package = Pick<typeof Postgres, "Client" | "Pool" | "types">;
const Package = z.custom<Package>((found) => typeof found === "object" && found !== null && "Pool" in found);

/**
 * Loads the package. `Client` sends none of the parameters that only a variable (`PGOPTIONS`) can have set, because poolers
 * refuse most parameters. Throws `StoreError` if the package is not installed.
 */
export function loadPostgres(place: string): Package {
  try {
    const { Client, ...rest } = Package.parse(loadPackage(POSTGRES_PACKAGE));
    class PlainClient extends Client {
      constructor(config?: ClientConfig | string) {
        super(config);
        const parameters: unknown = Reflect.get(this, "connectionParameters");
        if (typeof parameters === "object" && parameters !== null)
          Object.assign(parameters, { options: undefined, replication: undefined });
      }
    }
    return { ...rest, Client: PlainClient };
  } catch (error) {
    throw new StoreError("driver", place, error, "database");
  }
}

/** Statement with a time limit of its own, which the types of `pg` leave out. */
export interface TimedQuery extends QueryConfig {
  readonly query_timeout?: number | undefined;
}

/** Identifies the type `bigint`. */
const BIGINT = 20;
/** Time limits, ms: of opening a connection, of a statement at the server, of its answer. */
const CONNECT_MS = 5_000;
export const STATEMENT_MS = 10_000;
const ANSWER_MS = 12_000;
const LOCK_MS = 5_000;
/** Time after which the first sign of life of an idle connection is sent, ms. */
const KEEP_ALIVE_MS = 10_000;

export function targetOf({ url }: DatabaseLocation): Target {
  try {
    return readTarget(url, () => userInfo().username);
  } catch (error) {
    throw new StoreError("url", hideUser(url), error, "database");
  }
}

function hideUser(url: string): string {
  return url.replace(/\/\/[^/]*@/, "//");
}

/**
 * Returns the terms of a connection. Names each value that `pg` would otherwise take from a `PG*` variable, because such
 * variables are for the programs that sessions run.
 */
export function clientConfig(target: Target, location: DatabaseLocation, name: string): ClientConfig {
  const { database, host, port, user } = target;
  const { types } = loadPostgres(target.name);
  return {
    host,
    port,
    user,
    database,
    password: async () => findPassword(target, location),
    ssl: tlsOptions(target),
    application_name: name,
    client_encoding: "UTF8",
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: {
      // Reads a bigint as a number: no value of the store reaches 2^53.
      getTypeParser: (oid: number, format?: "text" | "binary"): unknown =>
        oid === BIGINT && format !== "binary" ? Number : types.getTypeParser(oid, format),
    },
  };
}

/**
 * Statements that set up a connection, and the process of the server that serves it. Takes one round trip. With generic plans a
 * statement is planned once, and not at each call in a large store: all of them read a range of an index.
 */
function setup(schema: string): string {
  return `SET search_path TO "${schema}", pg_temp; SET statement_timeout = ${String(STATEMENT_MS)};
    SET lock_timeout = ${String(LOCK_MS)}; SET idle_in_transaction_session_timeout = ${String(ANSWER_MS)};
    SET default_transaction_isolation = 'read committed'; SET jit = off; SET plan_cache_mode = force_generic_plan;
    SELECT pg_backend_pid() AS pid`;
}

/** Sets up a new connection. Returns true if a pooler is between: the server's process is not the one that greeted. */
export async function setUpClient(client: ClientBase, schema: string): Promise<boolean> {
  const results: unknown = await client.query(setup(schema));
  const last: unknown = Array.isArray(results) ? results.at(-1) : undefined;
  const greeted: unknown = Reflect.get(client, "processID");
  return backendPid(last) !== greeted;
}

/** Returns the column `pid` of the first row. */
export function backendPid(result: unknown): unknown {
  const rows: unknown = typeof result === "object" && result !== null ? Reflect.get(result, "rows") : undefined;
  const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
  return typeof row === "object" && row !== null ? Reflect.get(row, "pid") : undefined;
}

const PID = "SELECT pg_backend_pid() AS pid";
/** Time limit of a look, ms: a pooler with a single connection to the server keeps the second client waiting. */
const LOOK_MS = 2_000;

/**
 * Throws `StoreError` if a pooler gives the connection to other clients between transactions: while `other` is in a transaction,
 * `client` then reaches another process of the server, or none.
 */
export async function refuseTransactionPooler(client: ClientBase, other: ClientBase, place: string): Promise<void> {
  const before = backendPid(await client.query(PID));
  await other.query("BEGIN");
  const look: TimedQuery = { text: PID, query_timeout: LOOK_MS };
  const taken = backendPid(await other.query(PID));
  const after = await client.query(look).then(backendPid, () => undefined);
  await other.query("ROLLBACK");
  if (taken === before || after !== before) throw new StoreError("pooler", place, undefined, "database");
}
