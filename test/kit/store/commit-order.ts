import { join } from "node:path";
import { z } from "zod";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/** Reads in which order the servers of a store have committed events and values of the ledger, exactly. */

const Commit = z.object({
  n: z.int(),
  /** Session, or key of the ledger. */
  of: z.string(),
  /** Type of an event, `stopping` for the decision to stop a turn, or `ledger`. */
  type: z.string(),
  /** Event or value as JSON; reason of a stop. */
  content: z.string(),
});
export type Commit = z.infer<typeof Commit>;

/** SQLite runs the triggers inside each transaction, and transactions of all processes one after the other. */
const RECORD = `
  CREATE TABLE test_commits(n INTEGER PRIMARY KEY, "of" TEXT NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL);
  CREATE TRIGGER test_event AFTER INSERT ON events BEGIN
    INSERT INTO test_commits("of", type, content) VALUES(new.session_id, new.type, new.event); END;
  CREATE TRIGGER test_stop AFTER UPDATE ON sessions
    WHEN new.state ->> '$.turn.stopping.reason' IS NOT old.state ->> '$.turn.stopping.reason' BEGIN
    INSERT INTO test_commits("of", type, content)
      VALUES(new.id, 'stopping', coalesce(new.state ->> '$.turn.stopping.reason', '')); END;
  CREATE TRIGGER test_first_value AFTER INSERT ON ledger BEGIN
    INSERT INTO test_commits("of", type, content) VALUES(new.key, 'ledger', new.value); END;
  CREATE TRIGGER test_value AFTER UPDATE ON ledger BEGIN
    INSERT INTO test_commits("of", type, content) VALUES(new.key, 'ledger', new.value); END;`;

/** Begins to record in the store of `home`, which a server has made. Returns a function that reads what is committed so far. */
export async function recordCommits(home: string): Promise<(after?: number) => Promise<Commit[]>> {
  const file = join(home, ".local/state/claude-agents-mcp/store.db");
  const database = await openDatabase(file);
  database.exec(`PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE; ${RECORD} COMMIT;`);
  database.close();
  return async (after = 0) => {
    const reader = await openDatabase(file);
    try {
      return z.array(Commit).parse(reader.prepare("SELECT * FROM test_commits WHERE n > $after").all({ after }));
    } finally {
      reader.close();
    }
  };
}
