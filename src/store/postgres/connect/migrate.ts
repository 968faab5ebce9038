import type { Client } from "pg";
import { z } from "zod";
import { StoreError } from "../../errors.ts";
import type { TimedQuery } from "./client-config.ts";
import { STEPS } from "./schema-steps.ts";
import type { Target } from "./target.ts";

/** Time limits, ms: of a step on a large database, and of the wait for another server that migrates. */
const [STEP_MS, WAIT_MS] = [3_600_000, 600_000];

const sql = {
  server: `SELECT current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby,
    to_regnamespace($1) IS NOT NULL AS "hasSchema", to_regclass($2) IS NOT NULL AS "hasMeta",
    EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace($1)) AS "hasTables"`,
  meta: "SELECT key, value FROM meta WHERE key IN ('store', 'version', 'readable_by')",
  lock: "SELECT pg_advisory_xact_lock(hashtextextended('claude-agents-mcp schema ' || $1, 0))",
  version: "UPDATE meta SET value = $1 WHERE key = 'version'",
} as const;

const Server = z.object({
  encoding: z.string(),
  standby: z.boolean(),
  hasSchema: z.boolean(),
  hasMeta: z.boolean(),
  hasTables: z.boolean(),
});
const Meta = z.array(z.object({ key: z.string(), value: z.string() }));

/** Identifies the tables as those of this program. */
const STORE = "claude-agents-mcp";

/**
 * Checks the database and migrates its schema to this version, on a connection of its own. Safe when several servers migrate at
 * the same time. Throws `StoreError` if the schema is another program's, or has a version that this server must not touch.
 */
export async function prepareSchema(client: Client, { name, schema }: Target, steps = STEPS): Promise<void> {
  const read = async () => Server.parse((await client.query(sql.server, [schema, `${schema}.meta`])).rows[0]);
  const { encoding, hasMeta, hasTables, standby } = await read();
  if (encoding !== "UTF8") throw new StoreError("encoding", name, undefined, "database");
  if (hasTables && !hasMeta) throw new StoreError("foreign", name, undefined, "database");
  if (hasMeta && (await readVersion(client, name, steps)) >= steps.length) return;
  if (standby) throw new StoreError("readonly", name, undefined, "database");
  await client.query(`SET statement_timeout = ${String(STEP_MS)}; SET lock_timeout = ${String(WAIT_MS)}`);
  await client.query("BEGIN");
  try {
    const lock: TimedQuery = { text: sql.lock, values: [schema], query_timeout: WAIT_MS };
    await client.query(lock);
    // Reads again: another server may have been faster.
    const { hasMeta: isThere, hasSchema } = await read();
    if (!hasSchema) await client.query(`CREATE SCHEMA "${schema}"`);
    if (!isThere) {
      await client.query(`CREATE TABLE meta(key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
        INSERT INTO meta VALUES('store', '${STORE}'), ('version', '0')`);
    }
    const version = await readVersion(client, name, steps);
    for (const text of steps.slice(version)) {
      const step: TimedQuery = { text, query_timeout: STEP_MS };
      await client.query(step);
    }
    if (version < steps.length) await client.query(sql.version, [String(steps.length)]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

async function readVersion(client: Client, name: string, steps: readonly string[]): Promise<number> {
  const rows = Meta.parse((await client.query(sql.meta)).rows);
  const meta = new Map(rows.map(({ key, value }) => [key, value]));
  if (meta.get("store") !== STORE) throw new StoreError("foreign", name, undefined, "database");
  if (Number(meta.get("readable_by") ?? 0) > steps.length) throw new StoreError("newer", name, undefined, "database");
  return Number(meta.get("version"));
}
