import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionLog, SessionRecord } from "../engine/ports.ts";
import { Quarters } from "./quarters.ts";
import { readFacts } from "./reading.ts";
import type { Sum } from "./sum.ts";

/** Sums of this many quarters of an hour are remembered, of all sessions: some 20 MB. */
const MAX_QUARTERS = 50_000;

interface Known {
  readonly rev: number;
  /** A deleted session can be adopted again from the disk under its id, by another principal. */
  readonly createdAt: number;
  readonly sums: ReadonlyMap<number, Sum>;
}

/** What has happened in sessions; the log of one that has not changed since it was asked for last is not read again. */
export class RememberedQuarters {
  readonly #log: Pick<SessionLog, "read">;
  readonly #most: number;
  /** Those asked for last stand last. */
  readonly #known = new Map<string, Known>();
  #held = 0;

  constructor(log: Pick<SessionLog, "read">, most = MAX_QUARTERS) {
    this.#log = log;
    this.#most = most;
  }

  async of(record: SessionRecord, breathe: () => Promise<void>): Promise<ReadonlyMap<number, Sum>> {
    await breathe();
    const known = this.#known.get(record.id);
    const isKnown = known?.rev === record.rev && known.createdAt === record.createdAt;
    const sums = isKnown ? known.sums : await this.#read(record, breathe);
    this.#forget(record.id);
    this.#known.set(record.id, { rev: record.rev, createdAt: record.createdAt, sums });
    this.#held += weightOf(sums);
    for (const [id] of this.#known) {
      if (this.#held <= this.#most) break;
      this.#forget(id);
    }
    return sums;
  }

  async #read(record: SessionRecord, breathe: () => Promise<void>): Promise<ReadonlyMap<number, Sum>> {
    const quarters = new Quarters();
    const read: SessionLog["read"] = async (...args) => {
      await breathe();
      return this.#log.read(...args);
    };
    await readFacts({ read }, record, 0, quarters);
    return quarters.sums;
  }

  #forget(id: string): void {
    const known = this.#known.get(id);
    if (!known) return;
    this.#known.delete(id);
    this.#held -= weightOf(known.sums);
  }
}

/** A session of which there is nothing to tell takes room too. */
function weightOf(sums: ReadonlyMap<number, Sum>): number {
  return sums.size + 1;
}

/** Maximum time for which other work at the event loop waits, ms, but for one read. */
const SLICE_MS = 5;

/** To be awaited in a long work wherever it can rest: others have their turn then, if it has worked for a while. */
export function breather(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await nextTurn();
    since = performance.now();
  };
}
