import { join } from "node:path";
import { z } from "zod";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/** Reads the store in a home folder while servers use it. */

const Event = z.object({ id: z.int(), type: z.string(), event: z.string() });
const Entry = z.object({ key: z.string(), value: z.string().transform((text): unknown => JSON.parse(text)) });
const Count = z.object({ count: z.int() });

async function read<T>(home: string, sql: string, schema: z.ZodType<T>, values = {}): Promise<T[]> {
  const database = await openDatabase(join(home, ".local/state/claude-agents-mcp/store.db"));
  try {
    return z.array(schema).parse(database.prepare(sql).all(values));
  } finally {
    database.close();
  }
}

/** Returns the log of a session; `event` is JSON. */
export async function storedEvents(home: string, sessionId: string): Promise<z.infer<typeof Event>[]> {
  const sql = "SELECT id, type, event FROM events WHERE session_id = $sessionId ORDER BY id";
  return read(home, sql, Event, { sessionId });
}

/** Returns the entries of the ledger whose keys begin with `prefix`, by key. */
export async function storedLedger(home: string, prefix: string): Promise<z.infer<typeof Entry>[]> {
  return read(
    home,
    "SELECT key, value FROM ledger WHERE substr(key, 1, length($prefix)) = $prefix ORDER BY key",
    Entry,
    { prefix },
  );
}

/** Returns the notices in the logs of all sessions that contain `text`. */
export async function storedNotices(home: string, text: string): Promise<z.infer<typeof Event>[]> {
  const sql = "SELECT id, type, event FROM events WHERE type = 'notice' AND instr(event, $text) > 0";
  return read(home, sql, Event, { text });
}

/** Number of servers in the store. */
export async function storedNodes(home: string): Promise<number> {
  const [{ count } = { count: 0 }] = await read(home, "SELECT count(*) AS count FROM nodes", Count);
  return count;
}
