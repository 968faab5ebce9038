import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { SparePool } from "../../src/claude/spares/pool.ts";
import { firstProcessTag } from "../../src/domain/names.ts";
import type { SpareSpec } from "../../src/claude/spares/spec.ts";

/** Starts and ends of spares in `SparePool`. `test/server/spares*.test.ts` has real spares. */

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** Longer than the quiet time before a refill, ms. */
const QUIET = 1_001;
const IDLE = 60_000;

/** A spare process, controlled by the test. */
class Process {
  readonly key: string;
  readonly sessionId = randomUUID();
  readonly processTag = firstProcessTag(this.sessionId);
  hasEnded = false;
  readonly #up: Promise<void>;
  readonly #gone: Promise<void>;
  #onGone = () => undefined as void;
  #onDeath: (error: Error) => void = () => undefined;
  comesUp = () => undefined as void;

  constructor(key: string) {
    this.key = key;
    this.#up = new Promise((resolve, reject) => {
      this.comesUp = resolve;
      this.#onDeath = reject;
    });
    this.#up.catch(() => undefined);
    this.#gone = new Promise((resolve) => (this.#onGone = resolve));
  }

  end(): void {
    this.hasEnded = true;
    this.#onDeath(new Error("it was ended"));
    this.#onGone();
  }

  up = async (): Promise<void> => this.#up;
  gone = async (): Promise<void> => this.#gone;
  claimOrStart = async (): Promise<never> => Promise.reject(new Error("no session claims it here"));
}

function poolOf({ room = 10, size = 1 } = {}) {
  const started: Process[] = [];
  const pool = new SparePool({
    size,
    idleMs: IDLE,
    begin: async ({ key }) => {
      started.push(new Process(key));
      return Promise.resolve(started.at(-1)!);
    },
    log: { debug: () => undefined },
  });
  const hasFreeSlot = async () => Promise.resolve(pool.available < room);
  return {
    pool,
    started,
    /** Ends a turn of a session; `keyOf` returns the current key of the session. */
    turnEnds: (keyOf: () => string) =>
      pool.remember(
        async () => Promise.resolve({ key: keyOf(), options: {}, wrapper: [], record: {} } satisfies SpareSpec),
        hasFreeSlot,
      ),
    /** Advances the clock by `ms`; each process started meanwhile comes up. */
    passes: async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      for (let seen = -1; seen < started.length;) {
        seen = started.length;
        for (const each of started) each.comesUp();
        await vi.advanceTimersByTimeAsync(0);
      }
    },
    living: () => started.filter(({ hasEnded }) => !hasEnded).map(({ key }) => key),
  };
}

describe("spares", () => {
  it("spares start a second after the last start of a session or end of a turn", async () => {
    const { started, passes, pool, turnEnds } = poolOf();
    turnEnds(() => "a");
    await passes(QUIET - 2);
    pool.fillWhenQuiet();
    await passes(QUIET - 2);
    expect(started).toEqual([]);
    await passes(2);
    expect(started).toHaveLength(1);
  });

  it("spares start one after the other, and none starts while sessions start", async () => {
    const { started, passes, pool, turnEnds } = poolOf({ size: 2 });
    turnEnds(() => "a");
    await vi.advanceTimersByTimeAsync(QUIET);
    expect(started).toHaveLength(1);
    pool.fillWhenQuiet();
    started[0]!.comesUp();
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toHaveLength(1);
    await passes(QUIET);
    expect(started).toHaveLength(2);
  });

  it("spares are kept for the last three keys; a fourth key ends those of the least recently used", async () => {
    const { living, passes, turnEnds } = poolOf();
    for (const key of ["a", "b", "c", "a"]) {
      turnEnds(() => key);
      await passes(QUIET);
    }
    expect(living()).toEqual(["a", "b", "c"]);
    turnEnds(() => "d");
    await passes(QUIET);
    expect(living()).toEqual(["a", "c", "d"]);
  });

  it("spares of a key are kept while eight turns of another key end without a pause", async () => {
    const { living, passes, turnEnds } = poolOf();
    turnEnds(() => "a");
    await passes(QUIET);
    for (let session = 0; session < 8; session++) turnEnds(() => "b");
    await passes(QUIET);
    expect(living()).toEqual(["a", "b"]);
  });

  it("spares do not end others if there is no room", async () => {
    const { living, passes, turnEnds } = poolOf({ room: 1 });
    turnEnds(() => "a");
    await passes(QUIET);
    turnEnds(() => "b");
    await passes(QUIET);
    expect(living()).toEqual(["a"]);
  });

  it("spares are replaced if a change gives their session another key; the others stay", async () => {
    const { living, passes, pool, turnEnds } = poolOf();
    let key = "a";
    turnEnds(() => key);
    turnEnds(() => "b");
    await passes(QUIET);
    key = "a with a command line more";
    pool.fillWhenQuiet();
    await passes(QUIET);
    expect(living()).toEqual(["b", "a with a command line more"]);
  });

  it("a key that cannot be started leaves other spares alone, and is tried again after the next turn", async () => {
    const { started, living, passes, turnEnds } = poolOf();
    turnEnds(() => "a");
    turnEnds(() => "b");
    await vi.advanceTimersByTimeAsync(QUIET);
    started[0]!.end();
    await passes(0);
    expect(started.map(({ key }) => key)).toEqual(["b", "a"]);
    turnEnds(() => "a");
    await passes(QUIET);
    expect(living()).toEqual(["a", "b"]);
  });
});

describe("a spare that is still starting", () => {
  async function starting() {
    const all = poolOf();
    all.turnEnds(() => "a");
    await vi.advanceTimersByTimeAsync(QUIET);
    return { ...all, spare: all.started[0]! };
  }

  it("a starting spare counts until a session reserves it, and is reserved for one session", async () => {
    const { pool, spare } = await starting();
    expect(pool.available).toBe(1);
    expect(pool.reserve("other")).toBeUndefined();
    expect(pool.reserve("a")).toBe(spare.sessionId);
    expect(pool.available).toBe(0);
    expect(pool.reserve("a")).toBeUndefined();
    expect(await pool.take(spare.processTag, "a")).toBe(spare);
    expect(pool.has(spare.processTag)).toBe(false);
    spare.comesUp();
    await pool.close();
    expect(spare.hasEnded).toBe(false);
  });

  it("a dropped spare is found until it is gone, so that no other process gets its tag", async () => {
    const { pool, spare } = await starting();
    pool.reserve("a");
    const dropped = pool.drop(spare.processTag);
    expect(pool.has(spare.processTag)).toBe(true);
    await dropped;
    expect(spare.hasEnded).toBe(true);
    expect(pool.has(spare.processTag)).toBe(false);
  });

  it.each(["close", "retire"] as const)("a starting spare ends at `%s`, and is not replaced", async (how) => {
    const { started, passes, pool, spare } = await starting();
    await pool[how]();
    expect([spare.hasEnded, pool.available]).toEqual([true, 0]);
    await passes(IDLE);
    expect(started).toHaveLength(1);
  });

  it("a starting spare ends after the idle time if no session takes it", async () => {
    const { passes, pool, spare } = await starting();
    await passes(IDLE);
    expect([spare.hasEnded, pool.available]).toEqual([true, 0]);
  });
});
