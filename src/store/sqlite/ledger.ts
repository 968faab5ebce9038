import { ConflictError, type Ledger, type LedgerChange, type LedgerEntry } from "../../engine/ports.ts";
import { FORGET_ENTRY_MS, LedgerRow } from "../rows.ts";
import type { Connection } from "./connect/connection.ts";

const entry = `SELECT key, value, rev, at FROM ledger`;

const sql = {
  read: `${entry} WHERE key IN (SELECT value FROM json_each($keys))`,
  list: `${entry} WHERE key >= $from AND key < $to ORDER BY key`,
  rev: "SELECT rev FROM ledger WHERE key = $key",
  write: `INSERT INTO ledger(key, value, rev, at) VALUES($key, $value, 1, $at)
    ON CONFLICT(key) DO UPDATE SET value = excluded.value, rev = rev + 1, at = excluded.at`,
  forget: "DELETE FROM ledger WHERE at < $before",
} as const;

const Rev = LedgerRow.pick({ rev: true });

export function readEntries(db: Connection, keys: readonly string[]): LedgerEntry[] {
  return db.all(sql.read, LedgerRow, { keys: JSON.stringify(keys) });
}

export function listEntries(db: Connection, prefix: string): LedgerEntry[] {
  return db.all(sql.list, LedgerRow, { from: prefix, to: `${prefix}\u{10ffff}` });
}

/** Applies changes in the present transaction. Throws `ConflictError` if an entry has another `rev`. */
export function applyChanges(db: Connection, changes: readonly LedgerChange[], at: number): void {
  for (const { key, rev } of changes) {
    if ((db.get(sql.rev, Rev, { key })?.rev ?? 0) !== rev)
      throw new ConflictError(`${key} has changed since it was read`);
  }
  for (const { key, value } of changes) if (value) db.run(sql.write, { key, value: JSON.stringify(value), at });
}

export function forgetEntries(db: Connection, now: number): void {
  db.run(sql.forget, { before: now - FORGET_ENTRY_MS });
}

interface Access {
  readonly read: <T>(work: (db: Connection) => T) => Promise<T>;
  readonly write: <T>(work: (db: Connection) => T) => Promise<T>;
  readonly now: () => number;
}

export function createLedger({ now, read, write }: Access): Ledger {
  return {
    read: async (keys) => read((db) => readEntries(db, keys)),
    list: async (prefix) => read((db) => listEntries(db, prefix)),
    apply: async (changes) => write((db) => applyChanges(db, changes, now())),
    update: async (key, change) =>
      write((db) => {
        const [before] = readEntries(db, [key]);
        const value = change(before?.value);
        if (value) applyChanges(db, [{ key, rev: before?.rev ?? 0, value }], now());
      }),
  };
}
