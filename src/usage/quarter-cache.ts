import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionLog, SessionRecord } from "../engine/ports.ts";
import { Quarters } from "./quarters.ts";
import { readFacts } from "./reading.ts";
import type { Sum } from "./sum.ts";

/** Maximum number of remembered sums over all sessions, about 20 MB. */
const MAX_QUARTERS = 50_000;

interface CacheEntry {
  readonly rev: number;
  /** Detects a session that was deleted and adopted again under its id, perhaps by another principal. */
  readonly createdAt: number;
  readonly sums: ReadonlyMap<number, Sum>;
}

/** Caches the quarters of sessions. A log is read again only after its session has changed. */
export class QuarterCache {
  readonly #log: Pick<SessionLog, "read">;
  readonly #most: number;
  /** Least recently used first. */
  readonly #known = new Map<string, CacheEntry>();
  #held = 0;

  constructor(log: Pick<SessionLog, "read">, most = MAX_QUARTERS) {
    this.#log = log;
    this.#most = most;
  }

  async get(record: SessionRecord, breathe: () => Promise<void>): Promise<ReadonlyMap<number, Sum>> {
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

/** Counts 1 for an empty session, which takes memory too. */
function weightOf(sums: ReadonlyMap<number, Sum>): number {
  return sums.size + 1;
}

/** Maximum time without a yield to the event loop, ms, apart from a single read. */
const SLICE_MS = 5;

/** Returns a function for long work to await between reads. Yields to the event loop after `SLICE_MS` of work. */
export function createYielder(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await nextTurn();
    since = performance.now();
  };
}
