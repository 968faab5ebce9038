import type { Logger } from "../../engine/ports.ts";
import type { Spare } from "./spare.ts";
import type { SpareSpec } from "./spec.ts";

type Parked = Pick<Spare, keyof Spare>;

interface SparesOptions {
  /** How many are kept for each key. */
  readonly size: number;
  /** A spare that is not claimed within this time is ended, ms. */
  readonly idleMs: number;
  /** Starts one. Rejects where that cannot be. */
  readonly begin: (spec: SpareSpec) => Promise<Parked>;
  readonly log: Pick<Logger, "debug">;
}

/**
 * Says what a spare for sessions like a former one is started with now: settings, command lines of clients and the user's
 * configuration may have changed meanwhile. Undefined or rejected where there can be none.
 */
export type Recipe = () => Promise<SpareSpec | undefined>;

/** Number of keys for which spares are kept: clients that take turns do not end each other's. */
const MAX_KEYS = 3;
/** Number of sessions whose turns ended since it was last quiet that are looked at. */
const MAX_RECENT = 5;
/** Time without the start of a session or the end of a turn before spares are started: what follows right behind needs the processor, ms. */
const QUIET_MS = 1_000;

/**
 * Claude Code processes that were started before their sessions, with the options of the last sessions. A spare belongs to a
 * session as soon as its id is reserved, also while it is still starting.
 */
export class SparePool {
  readonly #options: SparesOptions;
  /** In the order of their starts, so the one that is still starting is the last. */
  #unclaimed: Parked[] = [];
  readonly #reserved = new Map<string, Parked>();
  /** Of all that are neither taken nor gone. */
  readonly #timers = new Map<Parked, NodeJS.Timeout>();
  /** Of the keys that have spares, the last used first. */
  #kept: readonly Recipe[] = [];
  /** Their keys are computed when it is quiet, which takes the server some milliseconds. */
  #recent: readonly Recipe[] = [];
  #hasFreeSlot = async (): Promise<boolean> => Promise.resolve(false);
  #untilQuiet: NodeJS.Timeout | undefined;
  #isQuiet = false;
  #filling: Promise<void> | undefined;
  #closed = false;

  constructor(options: SparesOptions) {
    this.#options = options;
  }

  /** Number of unclaimed spares, with those that are still starting. */
  get available(): number {
    return this.#unclaimed.length;
  }

  /** The id of a session that can begin in a spare; undefined where there is none for it. */
  reserve(key: string): string | undefined {
    const spare = this.#unclaimed.find((each) => each.key === key);
    if (!spare) return undefined;
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
    this.#reserved.set(spare.processTag, spare);
    return spare.sessionId;
  }

  /** Whether the process of this process tag would be a spare. */
  has(processTag: string): boolean {
    return this.#reserved.has(processTag);
  }

  /** The spare that has this process tag, if it would still be the same as one that is started now. */
  async take(processTag: string, key: string | undefined): Promise<Parked | undefined> {
    const spare = this.#reserved.get(processTag);
    if (!spare) return undefined;
    if (spare.key === key) {
      this.#forget(spare);
      return spare;
    }
    await this.#end(spare);
    return undefined;
  }

  /** The spare with this process tag will not be claimed any more. */
  async drop(processTag: string): Promise<void> {
    const spare = this.#reserved.get(processTag);
    if (spare) await this.#end(spare);
  }

  /** A turn has ended, and sessions like the one of this recipe may follow. */
  remember(recipe: Recipe, hasFreeSlot: () => Promise<boolean>): void {
    if (this.#options.size === 0) return;
    this.#hasFreeSlot = hasFreeSlot;
    this.#recent = [recipe, ...this.#recent.filter((each) => each !== recipe)].slice(0, MAX_RECENT);
    this.stir();
  }

  /** A session starts, a turn has ended, or what spares are started with has changed: once it is quiet, those that are missing are started. */
  stir(): void {
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
    this.stir();
    await this.#endAll([...this.#timers.keys()]);
    await this.#filling;
  }

  #onQuiet(): void {
    this.#isQuiet = true;
    this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
  }

  /** Starts what is missing, one after the other, while it is quiet and there is room. */
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

  /** What spares would be started with now, the last used first; none where it is not quiet any more. Ends those that fit nothing of it. */
  async #wanted(): Promise<SpareSpec[]> {
    const found = new Map<string, { readonly recipe: Recipe; readonly spec: SpareSpec }>();
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
    if (this.#unclaimed.includes(spare)) log.debug("a spare waits", { sessionId });
    // One that dies while it waits is no spare any more.
    void spare.gone().then(() => this.#forget(spare));
    return true;
  }

  async #endAll(spares: readonly Parked[]): Promise<void> {
    await Promise.all(spares.map(async (spare) => this.#end(spare)));
  }

  /** Its session finds it until it is gone: before, no other process can have its tag. */
  async #end(spare: Parked): Promise<void> {
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
    spare.end();
    await spare.gone();
    this.#forget(spare);
  }

  #forget(spare: Parked): void {
    clearTimeout(this.#timers.get(spare));
    this.#timers.delete(spare);
    this.#reserved.delete(spare.processTag);
    this.#unclaimed = this.#unclaimed.filter((each) => each !== spare);
  }
}
