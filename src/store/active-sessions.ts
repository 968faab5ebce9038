import { z } from "zod";
import type { SessionRecord } from "../engine/ports.ts";
import { recordOf, type SessionRow } from "./rows.ts";

/** Columns that tell if a session at work has changed. */
export const ActiveHead = z.object({ id: z.string(), rev: z.int(), createdAt: z.int(), nodeId: z.string() });
export type ActiveHead = z.infer<typeof ActiveHead>;

/**
 * Caches the sessions at work of living nodes. A server with a session that waits for a slot reads them ten times a second, and
 * a thousand may wait: unchanged sessions are not read again.
 */
export class ActiveSessionCache {
  #known = new Map<string, SessionRecord>();

  /** Returns the heads of sessions that have changed since the last `update`. */
  changed(heads: readonly ActiveHead[]): ActiveHead[] {
    return heads.filter((head) => !this.#unchanged(head));
  }

  /** Returns the records for `heads`, with `rows` in place of changed ones. Forgets all others. */
  update(heads: readonly ActiveHead[], rows: readonly SessionRow[]): SessionRecord[] {
    const changed = new Map(rows.map((row) => [row.id, row]));
    const records = heads.flatMap((head) => {
      const row = changed.get(head.id);
      const known = this.#unchanged(head);
      if (known) return [known];
      return row ? [recordOf(row, { nodeId: head.nodeId, alive: true })] : [];
    });
    this.#known = new Map(records.map((record) => [record.id, record]));
    return records;
  }

  #unchanged({ createdAt, id, nodeId, rev }: ActiveHead): SessionRecord | undefined {
    const known = this.#known.get(id);
    const isSame = known?.rev === rev && known.createdAt === createdAt && known.owner?.nodeId === nodeId;
    return isSame ? known : undefined;
  }
}
