import { z } from "zod";
import type { SessionRecord } from "../../engine/ports.ts";
import type { Connection } from "./connect/connection.ts";
import { recordOf } from "./rows.ts";
import { getSession } from "./sessions.ts";

const sql = {
  heads: `SELECT id, rev, created_at AS "createdAt", owner AS "nodeId" FROM sessions
    WHERE at_work = 1 AND owner IN (SELECT value FROM json_each($living))`,
} as const;

const Head = z.object({ id: z.string(), rev: z.int(), createdAt: z.int(), nodeId: z.string() });

/**
 * The sessions at work of living nodes. A server with a session that waits for a slot asks for them ten times a second,
 * and a thousand may wait: those that have not changed since the last time are not read again.
 */
export class AtWork {
  #known = new Map<string, SessionRecord>();

  read(db: Connection, living: readonly string[]): SessionRecord[] {
    const records = db.snapshot(() =>
      db.all(sql.heads, Head, { living: JSON.stringify(living) }).flatMap(({ createdAt, id, nodeId, rev }) => {
        const known = this.#known.get(id);
        const isSame = known?.rev === rev && known.createdAt === createdAt && known.owner?.nodeId === nodeId;
        if (known && isSame) return [known];
        const row = getSession(db, id);
        return row ? [recordOf(row, { nodeId, alive: true })] : [];
      }),
    );
    this.#known = new Map(records.map((record) => [record.id, record]));
    return records;
  }
}
