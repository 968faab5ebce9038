import { z } from "zod";
import { StoreError } from "../../errors.ts";
import { refuseTransactionPooler, targetOf } from "./client-config.ts";
import { asDatabaseError } from "./database-faults.ts";
import { Database, VERSION } from "./database.ts";
import type { DatabaseLocation } from "./target.ts";

/** Looks at a database and changes nothing, not even an empty one. */

const sql = {
  server: `SELECT current_setting('server_version') AS server, current_setting('max_connections')::int AS most,
    (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    to_regclass($1) IS NOT NULL AS "hasStore", current_setting('server_encoding') AS encoding,
    to_regnamespace($2) IS NOT NULL OR has_database_privilege(current_database(), 'CREATE') AS "mayCreate"`,
  store: `SELECT (SELECT value::int FROM meta WHERE key = 'version') AS version,
    (SELECT value::int FROM meta WHERE key = 'readable_by') AS "readableBy",
    (SELECT count(*)::int FROM sessions) AS sessions,
    (SELECT count(*)::int FROM nodes WHERE expires_at > now_ms()) AS nodes`,
} as const;

const Server = z.object({
  server: z.string(),
  encoding: z.string(),
  most: z.int(),
  used: z.int(),
  isReadOnly: z.boolean(),
  hasStore: z.boolean(),
  mayCreate: z.boolean(),
});
const Store = z.object({ version: z.int(), readableBy: z.int(), sessions: z.int(), nodes: z.int() });

export interface DatabaseFacts {
  /** Host, port and database. */
  readonly name: string;
  /** Version of PostgreSQL. */
  readonly server: string;
  /** Connections in use, and their maximum. */
  readonly used: number;
  readonly most: number;
  /** `undefined` before the first session. */
  readonly store: z.output<typeof Store> | undefined;
}

/** Throws `StoreError` with the reason for which a server could not use the database, and ConfigError for the password file. */
export async function inspectDatabase(location: DatabaseLocation): Promise<DatabaseFacts> {
  const database = new Database(location);
  const { name, schema } = targetOf(location);
  const refuse = (fault: "encoding" | "newer" | "readonly" | "rights"): never => {
    throw new StoreError(fault, name, undefined, "database");
  };
  const clients: Awaited<ReturnType<Database["connect"]>>[] = [];
  try {
    for (const use of ["doctor", "doctor, second"]) clients.push(await database.connect(`claude-agents-mcp ${use}`));
    const [client, other] = clients;
    if (!client || !other) throw new Error("not connected");
    await refuseTransactionPooler(client, other, name);
    const found = Server.parse((await client.query(sql.server, [`${schema}.meta`, schema])).rows[0]);
    const { encoding, hasStore, isReadOnly, mayCreate, ...server } = found;
    if (encoding !== "UTF8") refuse("encoding");
    const store = hasStore ? Store.parse((await client.query(sql.store)).rows[0]) : undefined;
    if (store && store.readableBy > VERSION) refuse("newer");
    if (isReadOnly) refuse("readonly");
    if (!mayCreate) refuse("rights");
    return { name, ...server, store };
  } catch (error) {
    throw asDatabaseError(error, name);
  } finally {
    await Promise.all(clients.map(async (each) => each.end().catch(() => undefined)));
  }
}
