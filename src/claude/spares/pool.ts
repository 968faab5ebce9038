import type { Logger } from "../../engine/ports.ts";
import type { Spare } from "./spare.ts";
import type { SpareSpec } from "./spec.ts";

type PooledSpare = Pick<Spare, keyof Spare>;

interface SparesOptions {
  /** Number of spares for each key. */
  readonly size: number;
  /** Lifetime of an unclaimed spare, ms. */
  readonly idleMs: number;
  /** Starts a spare. Rejects if impossible. */
  readonly begin: (spec: SpareSpec) => Promise<PooledSpare>;
  readonly log: Pick<Logger, "debug">;
}

/**
 * Computes the current spec of a spare for sessions like a former session: settings, command lines of clients and the user's
 * configuration may have changed since. Resolves to `undefined` or rejects if no spare is possible.
 */
export type SpareRecipe = () => Promise<SpareSpec | undefined>;

/** Number of keys with spares, so that alternating clients do not end each other's spares. */
const MAX_KEYS = 3;
/** Number of recipes examined from turns that ended since the last quiet time. */
const MAX_RECENT = 5;
/** Quiet time before spares are started, ms: work right after a session's start or a turn's end needs the processor. */
const QUIET_MS = 1_000;

/**
 * Keeps Claude Code processes started before their sessions, with the options of recent sessions. A spare belongs to a session
 * once its id is reserved, even while still starting.
 */
export class SparePool {
  readonly #options: SparesOptions;
  /** Ordered by start, so that only the last may still be starting. */
  #unclaimed: PooledSpare[] = [];
  readonly #reserved = new Map<string, PooledSpare>();
  /** Idle timers of spares neither claimed nor gone. */
  readonly #timers = new Map<PooledSpare, NodeJS.Timeout>();
  /** Recipes of keys with spares, last used first. */
  #kept: readonly SpareRecipe[] = [];
  /** Recipes of ended turns. Their keys are computed in quiet times only, which takes the server some milliseconds. */
  #recent: readonly SpareRecipe[] = [];
  #hasFreeSlot = async (): Promise<boolean> => Promise.resolve(false);
  #untilQuiet: NodeJS.Timeout | undefined;
  #isQuiet = false;
  #filling: Promise<void> | undefined;
  #closed = false;

  constructor(options: SparesOptions) {
    this.#options = options;
  }

  /** Number of unclaimed spares, including those still starting. */
  get available(): number {
    return this.#unclaimed.length;
  }

  /** Reserves a spare and returns its session id; `undefined` if no spare has `key`. */
  reserve(key: string): string | undefined {
    const spare = this.#unclaimed.find((each) => each.key === key);
    if (!spare) return undefined;
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
    this.#reserved.set(spare.processTag, spare);
    return spare.sessionId;
  }

  /** True if `processTag` belongs to a reserved spare. */
  has(processTag: string): boolean {
    return this.#reserved.has(processTag);
  }

  /** Returns the reserved spare. Ends the spare instead if `key` has changed, because a new start would differ. */
  async take(processTag: string, key: string | undefined): Promise<PooledSpare | undefined> {
    const spare = this.#reserved.get(processTag);
    if (!spare) return undefined;
    if (spare.key === key) {
      this.#forget(spare);
      return spare;
    }
    await this.#end(spare);
    return undefined;
  }

  /** Ends a reserved spare that no session will claim. */
  async drop(processTag: string): Promise<void> {
    const spare = this.#reserved.get(processTag);
    if (spare) await this.#end(spare);
  }

  /** Call after a turn, because similar sessions may follow. */
  remember(recipe: SpareRecipe, hasFreeSlot: () => Promise<boolean>): void {
    if (this.#options.size === 0) return;
    this.#hasFreeSlot = hasFreeSlot;
    this.#recent = [recipe, ...this.#recent.filter((each) => each !== recipe)].slice(0, MAX_RECENT);
    this.fillWhenQuiet();
  }

  /**
   * Call at the start of a session, after a turn and after changes of the spares' options. Starts missing spares once quiet.
   */
  fillWhenQuiet(): void {
    this.#isQuiet = false;
    clearTimeout(this.#untilQuiet);
    if (this.#closed || this.#recent.length + this.#kept.length === 0) return;
    this.#untilQuiet = setTimeout(() => this.#onQuiet(), QUIET_MS).unref();
  }

  /** Ends unclaimed spares. */
  async retire(): Promise<void> {
    await this.#endAll(this.#unclaimed);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.fillWhenQuiet();
    await this.#endAll([...this.#timers.keys()]);
    await this.#filling;
  }

  #onQuiet(): void {
    this.#isQuiet = true;
    this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
  }

  /** Starts missing spares one by one, while quiet and while slots are free. */
  async #fill(): Promise<void> {
    const failed = new Set<string>();
    for (let spec = await this.#missing(failed); spec; spec = await this.#missing(failed)) {
      if (!(await this.#add(spec))) failed.add(spec.key);
    }
  }

  async #missing(failed: ReadonlySet<string>): Promise<SpareSpec | undefined> {
    const wanted = await this.#wanted();
    const isLacking = ({ key }: SpareSpec) =>
      this.#unclaimed.filter((each) => each.key === key).length < this.#options.size;
    const next = wanted.find((spec) => !failed.has(spec.key) && isLacking(spec));
    const hasRoom = next !== undefined && (await this.#hasFreeSlot());
    return hasRoom && this.#isQuiet ? next : undefined;
  }

  /** Returns the current specs, last used first; none if no longer quiet. Ends spares that fit no spec. */
  async #wanted(): Promise<SpareSpec[]> {
    const found = new Map<string, { readonly recipe: SpareRecipe; readonly spec: SpareSpec }>();
    const recent = this.#recent;
    for (const recipe of new Set([...recent, ...this.#kept])) {
      const spec = found.size < MAX_KEYS ? await recipe().catch(() => undefined) : undefined;
      if (!this.#isQuiet) return [];
      if (spec && !found.has(spec.key)) found.set(spec.key, { recipe, spec });
    }
    this.#kept = [...found.values()].map(({ recipe }) => recipe);
    this.#recent = this.#recent.filter((recipe) => !recent.includes(recipe));
    await this.#endAll(this.#unclaimed.filter(({ key }) => !found.has(key)));
    return [...found.values()].map(({ spec }) => spec);
  }

  async #add(spec: SpareSpec): Promise<boolean> {
    const { begin, idleMs, log } = this.#options;
    const spare = await begin(spec).catch((error: unknown) => {
      log.debug("a spare did not start", { error: String(error) });
    });
    if (!spare) return false;
    const { sessionId } = spare;
    this.#timers.set(spare, setTimeout(() => void this.#end(spare), idleMs).unref());
    this.#unclaimed.push(spare);
    if (this.#closed) void this.#end(spare);
    try {
      await spare.up();
    } catch (error) {
      log.debug("a spare did not start", { sessionId, error: String(error) });
      if (this.#timers.has(spare)) await this.#end(spare);
      return false;
    }
    if (this.#unclaimed.includes(spare)) log.debug("a spare is ready", { sessionId });
    // A spare that dies while waiting is no longer available.
    void spare.gone().then(() => this.#forget(spare));
    return true;
  }

  async #endAll(spares: readonly PooledSpare[]): Promise<void> {
    await Promise.all(spares.map(async (spare) => this.#end(spare)));
  }

  /** Keeps the tag reserved until the process is gone, because no other process can have the tag before. */
  async #end(spare: PooledSpare): Promise<void> {
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
    spare.end();
    await spare.gone();
    this.#forget(spare);
  }

  #forget(spare: PooledSpare): void {
    clearTimeout(this.#timers.get(spare));
    this.#timers.delete(spare);
    this.#reserved.delete(spare.processTag);
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
  }
}
