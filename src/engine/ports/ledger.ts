import type { JsonObject } from "../../domain/json.ts";

/** Value of the ledger. `rev` grows with each change; 0 for a key without a value. */
export interface LedgerEntry {
  readonly key: string;
  readonly value: JsonObject;
  readonly rev: number;
  /** Time of the last change, ms since the epoch. */
  readonly at: number;
}

/** Condition of a write: the entry still has `rev`. `value` replaces the entry's, if given. */
export interface LedgerChange {
  readonly key: string;
  readonly rev: number;
  readonly value?: JsonObject;
}

/** Small values that all servers of the store share: windows of accounts, budgets of days. */
export interface Ledger {
  /** Returns the entries that exist, in no order. */
  read(keys: readonly string[]): Promise<LedgerEntry[]>;
  /** Returns the entries whose keys begin with `prefix`, by key. */
  list(prefix: string): Promise<LedgerEntry[]>;
  /** Replaces a value in one transaction. `change` may run more than once; `undefined` changes nothing. */
  update(key: string, change: (value: JsonObject | undefined) => JsonObject | undefined): Promise<void>;
  /** Applies all changes in one transaction, as an append with `ledger` does. Throws `ConflictError`, then nothing is changed. */
  apply(changes: readonly LedgerChange[]): Promise<void>;
}
