import { ConflictError, type Ledger, type LedgerChange, type LedgerEntry } from "../../engine/ports.ts";
import { FORGET_ENTRY_MS, LedgerRow } from "../rows.ts";
import { CONFLICT } from "./connect/database-faults.ts";
import type { Database } from "./connect/database.ts";

const entry = "SELECT key, value, rev, at FROM ledger";

const sql = {
  read: `${entry} WHERE key = ANY($1::text[])`,
  list: `${entry} WHERE key >= $1 AND key < $2 ORDER BY key`,
  change: "SELECT change_ledger($1, $2, $3, $4)",
  forget: "DELETE FROM ledger WHERE at < $1",
} as const;

/** Columns of changes, for the functions of the schema. */
export function ledgerColumns(changes: readonly LedgerChange[]) {
  return [
    changes.map(({ key }) => key),
    changes.map(({ rev }) => rev),
    changes.map(({ value }) => (value ? JSON.stringify(value) : null)),
  ] as const;
}

/** Makes a ledger whose times are those of `now`. */
export function databaseLedger(db: Database, now: () => number): Ledger {
  const read = async (keys: readonly string[]): Promise<LedgerEntry[]> => db.all(sql.read, LedgerRow, [keys]);
  const apply = async (changes: readonly LedgerChange[]): Promise<void> => {
    try {
      await db.run(sql.change, [...ledgerColumns(changes), now()], { isRepeatable: false });
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === CONFLICT) throw changed(error.message);
      throw error;
    }
  };
  return {
    read,
    apply,
    list: async (prefix) => db.all(sql.list, LedgerRow, [prefix, `${prefix}\u{10ffff}`]),
    update: async (key, change) => {
      for (;;) {
        const [before] = await read([key]);
        const value = change(before?.value);
        if (!value) return;
        const conflict = await apply([{ key, rev: before?.rev ?? 0, value }]).catch((error: unknown) => {
          if (!(error instanceof ConflictError)) throw error;
          return error;
        });
        if (!conflict) return;
      }
    },
  };
}

export function changed(key: string): ConflictError {
  return new ConflictError(`${key} has changed since it was read`);
}

export async function forgetOldEntries(db: Database, now: number): Promise<void> {
  await db.run(sql.forget, [now - FORGET_ENTRY_MS]);
}
