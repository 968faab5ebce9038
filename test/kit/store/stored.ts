import { join } from "node:path";
import { z } from "zod";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/** Reads the store in a home folder while servers use it. */

const Event = z.object({ id: z.int(), type: z.string(), event: z.string() });
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

/** Number of servers in the store. */
export async function storedNodes(home: string): Promise<number> {
  const [{ count } = { count: 0 }] = await read(home, "SELECT count(*) AS count FROM nodes", Count);
  return count;
}
