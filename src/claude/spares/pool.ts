import type { Logger } from "../../engine/ports.ts";
import type { Preparation } from "../preparation.ts";
import type { Spawner } from "../supervise/spawn.ts";
import type { SpareSpec } from "./spec.ts";
import { Spare } from "./spare.ts";

interface SparesOptions {
  /** How many are kept. */
  readonly size: number;
  /** A spare that is not claimed within this time is ended, ms. */
  readonly idleMs: number;
  readonly spawner: Spawner;
  readonly loadSdk: Preparation["sdk"];
  readonly log: Pick<Logger, "debug">;
}

/**
 * Claude Code processes that were started before their sessions, with the options of the last session. A spare belongs to a
 * session as soon as its id is reserved.
 */
export class SparePool {
  readonly #options: SparesOptions;
  #available: Spare[] = [];
  readonly #reserved = new Map<string, Spare>();
  readonly #timers = new Map<Spare, NodeJS.Timeout>();
  #refilling: Promise<void> | undefined;
  #closed = false;

  constructor(options: SparesOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#options.size > 0;
  }

  /** Number of unclaimed spares. */
  get available(): number {
    return this.#available.length;
  }

  /** The id of a session that can begin in a spare; undefined where there is none for it. */
  reserve(key: string): string | undefined {
    const spare = this.#available.find((each) => each.key === key);
    if (!spare) return undefined;
    this.#available = this.#available.filter((each) => each !== spare);
    this.#reserved.set(spare.processTag, spare);
    return spare.sessionId;
  }

  /** Whether the process of this process tag would be a spare. */
  has(processTag: string): boolean {
    return this.#reserved.has(processTag);
  }

  /** The spare that has this process tag, if it would still be the same as one that is started now. */
  async take(processTag: string, key: string | undefined): Promise<Spare | undefined> {
    const spare = this.#reserved.get(processTag);
    if (!spare) return undefined;
    this.#forget(spare);
    if (spare.key === key) return spare;
    spare.end();
    await spare.gone();
    return undefined;
  }

  /** The spare with this process tag will not be claimed any more. */
  async drop(processTag: string): Promise<void> {
    const spare = this.#reserved.get(processTag);
    if (spare) await this.#end(spare);
  }

  /** Starts what is missing, one after the other, where there is room. Those for other options make way. */
  async refill(spec: SpareSpec, hasFreeSlot: () => Promise<boolean>): Promise<void> {
    if (this.#refilling || this.#closed) return;
    this.#refilling = this.#fill(spec, hasFreeSlot).finally(() => (this.#refilling = undefined));
    await this.#refilling;
  }

  /** Ends unclaimed spares. */
  async retire(): Promise<void> {
    await Promise.all(this.#available.map(async (spare) => this.#end(spare)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#timers.keys()].map(async (spare) => this.#end(spare)));
    await this.#refilling;
  }

  async #fill(spec: SpareSpec, hasFreeSlot: () => Promise<boolean>): Promise<void> {
    const others = this.#available.filter(({ key }) => key !== spec.key);
    await Promise.all(others.map(async (spare) => this.#end(spare)));
    while (this.#available.length < this.#options.size && (await hasFreeSlot()) && !this.#closed) {
      if (!(await this.#add(spec))) return;
    }
  }

  async #add(spec: SpareSpec): Promise<boolean> {
    const { idleMs, loadSdk, log, spawner } = this.#options;
    const { prewarm } = loadSdk();
    await spawner.ready();
    if (this.#closed) return false;
    const spare = new Spare(spec, { prewarm, spawner });
    this.#timers.set(spare, setTimeout(() => void this.#end(spare), idleMs).unref());
    const { sessionId } = spare;
    try {
      await spare.up();
    } catch (error) {
      log.debug("a spare did not start", { sessionId, error: String(error) });
      await this.#end(spare);
      return false;
    }
    if (!this.#timers.has(spare)) return false;
    this.#available.push(spare);
    log.debug("a spare waits", { sessionId });
    // One that dies while it waits is no spare any more.
    void spare.gone().then(() => this.#forget(spare));
    return true;
  }

  async #end(spare: Spare): Promise<void> {
    this.#forget(spare);
    spare.end();
    await spare.gone();
  }

  #forget(spare: Spare): void {
    clearTimeout(this.#timers.get(spare));
    this.#timers.delete(spare);
    this.#reserved.delete(spare.processTag);
    this.#available = this.#available.filter((each) => each !== spare);
  }
}
