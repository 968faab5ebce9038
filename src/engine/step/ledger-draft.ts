import type { JsonObject } from "../../domain/json.ts";
import type { LedgerChange, LedgerEntry } from "../ports.ts";

/** Knowledge of a step beyond the session's state, read just before: entries of the ledger, and the node. */
export interface Known {
  /** Reason why this node may begin no turn of the session, a sentence for people. Only on a store of several machines. */
  readonly away?: string | undefined;
  /** Account that pays for the session's processes; `undefined` if unknown, or if no limit asks for the account. */
  readonly accountId: string | undefined;
  /** Present day of budgets, and its end, ms since the epoch. */
  readonly day: string;
  readonly dayEndsAt: number;
  readonly entries: readonly LedgerEntry[];
}

export const NOTHING_KNOWN: Known = { accountId: undefined, day: "", dayEndsAt: 0, entries: [] };

/** Returns `known` with the values that a step has written. */
export function knownAfter(known: Known, changes: readonly LedgerChange[]): Known {
  const written = changes.flatMap(({ key, rev, value }) => (value ? [{ key, rev, value, at: 0 }] : []));
  const others = known.entries.filter((entry) => !written.some(({ key }) => key === entry.key));
  return { ...known, entries: [...others, ...written] };
}

/** Returns the changes of two steps, one after the other, as one. */
export function joinChanges(first: readonly LedgerChange[], then: readonly LedgerChange[]): LedgerChange[] {
  const byKey = new Map(first.map((change) => [change.key, change]));
  for (const change of then) byKey.set(change.key, { ...byKey.get(change.key), ...change });
  return [...byKey.values()];
}

/** Ledger as a step sees and changes it. The changes are stored together with the step, or neither is. */
export class LedgerDraft {
  readonly known: Known;
  readonly #changed = new Map<string, JsonObject>();
  /** Keys of entries that a decision relies on. */
  readonly #relied = new Set<string>();

  constructor(known: Known) {
    this.known = known;
  }

  /** Returns the value, with changes of this step. The step then relies on the value. */
  read(key: string): JsonObject | undefined {
    this.#relied.add(key);
    return this.#changed.get(key) ?? this.#entry(key)?.value;
  }

  /** Returns the value for a look that decides nothing which a moment later would be wrong. */
  glance(key: string): JsonObject | undefined {
    return this.#changed.get(key) ?? this.#entry(key)?.value;
  }

  write(key: string, value: JsonObject): void {
    this.#changed.set(key, value);
  }

  get changes(): LedgerChange[] {
    return [...new Set([...this.#relied, ...this.#changed.keys()])].map((key) => {
      const value = this.#changed.get(key);
      return { key, rev: this.#entry(key)?.rev ?? 0, ...(value && { value }) };
    });
  }

  #entry(key: string): LedgerEntry | undefined {
    return this.known.entries.find((entry) => entry.key === key);
  }
}
