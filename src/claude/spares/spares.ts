import type { Logger } from "../../engine/ports.ts";
import type { Spawner } from "../supervise/spawn.ts";
import type { Recipe } from "./recipe.ts";
import { Spare } from "./spare.ts";

interface SparesOptions {
  /** How many are kept. */
  readonly size: number;
  /** One that nobody has taken for so long is ended, ms. */
  readonly idleMs: number;
  readonly spawner: Spawner;
  readonly log: Pick<Logger, "debug">;
}

/**
 * Claude Codes that have started ahead of the sessions that will have them, for options like those of the last session.
 * One belongs to a session from the moment that its id is given away: nobody else gets it.
 */
export class Spares {
  readonly #options: SparesOptions;
  #parked: Spare[] = [];
  readonly #promised = new Map<string, Spare>();
  readonly #timers = new Map<Spare, NodeJS.Timeout>();
  #refilling: Promise<void> | undefined;
  #closed = false;

  constructor(options: SparesOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#options.size > 0;
  }

  /** How many nobody has yet. */
  get parked(): number {
    return this.#parked.length;
  }

  /** The id of a session that can begin in a spare; undefined where there is none for it. */
  promise(key: string): string | undefined {
    const spare = this.#parked.find((each) => each.key === key);
    if (!spare) return undefined;
    this.#parked = this.#parked.filter((each) => each !== spare);
    this.#promised.set(spare.mark, spare);
    return spare.sessionId;
  }

  /** Whether the process of this mark would be a spare. */
  has(mark: string): boolean {
    return this.#promised.has(mark);
  }

  /** The spare that has this mark, if it would still be the same as one that is started now. */
  async take(mark: string, key: string | undefined): Promise<Spare | undefined> {
    const spare = this.#promised.get(mark);
    if (!spare) return undefined;
    this.#forget(spare);
    if (spare.key === key) return spare;
    spare.end();
    await spare.gone();
    return undefined;
  }

  /** Nobody will take the one of this mark any more. */
  async drop(mark: string): Promise<void> {
    const spare = this.#promised.get(mark);
    if (spare) await this.#end(spare);
  }

  /** Starts what is missing, one after the other, where there is room. Those for other options make way. */
  async refill(recipe: Recipe, hasFreeSlot: () => Promise<boolean>): Promise<void> {
    if (this.#refilling || this.#closed) return;
    this.#refilling = this.#fill(recipe, hasFreeSlot).finally(() => (this.#refilling = undefined));
    await this.#refilling;
  }

  /** Ends those that nobody has yet. */
  async retire(): Promise<void> {
    await Promise.all(this.#parked.map(async (spare) => this.#end(spare)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#timers.keys()].map(async (spare) => this.#end(spare)));
    await this.#refilling;
  }

  async #fill(recipe: Recipe, hasFreeSlot: () => Promise<boolean>): Promise<void> {
    const others = this.#parked.filter(({ key }) => key !== recipe.key);
    await Promise.all(others.map(async (spare) => this.#end(spare)));
    while (this.#parked.length < this.#options.size && (await hasFreeSlot()) && !this.#closed) {
      if (!(await this.#add(recipe))) return;
    }
  }

  async #add(recipe: Recipe): Promise<boolean> {
    const { idleMs, log, spawner } = this.#options;
    const { prewarm } = await import("@anthropic-ai/claude-agent-sdk");
    if (this.#closed) return false;
    const spare = new Spare(recipe, { prewarm, spawner });
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
    this.#parked.push(spare);
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
    this.#promised.delete(spare.mark);
    this.#parked = this.#parked.filter((each) => each !== spare);
  }
}
