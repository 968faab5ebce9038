import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startRetention, type Retention } from "../../src/engine/retention.ts";
import type { StoreMaintenance } from "../../src/engine/ports.ts";
import { ManualClock } from "../kit/step/clock.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** A store of `count` idle sessions of one byte each. */
class Sessions {
  readonly #clock: ManualClock;
  readonly #updatedAt: number[];

  constructor(clock: ManualClock, ages: readonly number[]) {
    this.#clock = clock;
    this.#updatedAt = ages.map((age) => clock.now() - age).toSorted((a, b) => a - b);
  }

  get count(): number {
    return this.#updatedAt.length;
  }

  purge: StoreMaintenance["purge"] = async ({ before, limit }) => {
    const old = this.#updatedAt.filter((at) => at < Math.min(before, this.#clock.now())).slice(0, limit);
    this.#updatedAt.splice(0, old.length);
    return Promise.resolve(old.length);
  };

  forgotten = 0;
  forget = async (): Promise<void> => Promise.resolve(void (this.forgotten += 1));

  size = async (): Promise<number> => Promise.resolve(this.count);
}

let stop: (() => Promise<void>) | undefined;
const logged: unknown[] = [];
beforeEach(() => void logged.splice(0));
afterEach(async () => stop?.());

function keep(sessions: Sessions, clock: ManualClock, retention: Partial<Retention>): void {
  const { forget, purge, size } = sessions;
  const log = {
    debug: () => undefined,
    info: (...entry: unknown[]) => void logged.push(entry),
    warn: () => undefined,
    error: () => undefined,
  };
  const unused = { count: async () => Promise.resolve({}), principals: async () => Promise.resolve([]) };
  const maintenance = { forget, purge, size, ...unused };
  stop = startRetention(
    { backend: { maintenance }, clock, log },
    { maxAgeMs: 30 * DAY_MS, maxBytes: 1_000_000, everyMs: MINUTE_MS, ...retention },
  );
}

describe("a cleanup of old sessions", () => {
  it("a cleanup deletes all sessions above the maximum age, in any number of steps, and no others", async () => {
    const clock = new ManualClock();
    const sessions = new Sessions(clock, [...Array(200).fill(31 * DAY_MS), ...Array(7).fill(29 * DAY_MS)]);
    keep(sessions, clock, {});
    await expect.poll(() => sessions.count).toBe(7);
    await stop?.();
    expect(logged).toEqual([["old sessions deleted", { forAge: 200, forRoom: 0 }]]);
  });

  it("a cleanup deletes the oldest sessions for lack of space, and stops as soon as there is some", async () => {
    const clock = new ManualClock();
    const sessions = new Sessions(clock, Array(100).fill(MINUTE_MS));
    keep(sessions, clock, { maxBytes: 70 });
    await expect.poll(() => sessions.count).toBe(70);
    await stop?.();
    expect(sessions.count).toBe(70);
    expect(logged).toEqual([["old sessions deleted", { forAge: 0, forRoom: 30 }]]);
  });

  it("a cleanup deletes nothing by age for an hour after the clock was set, and runs again later", async () => {
    const clock = new ManualClock();
    const sessions = new Sessions(clock, Array(3).fill(30 * DAY_MS - 2 * MINUTE_MS));
    keep(sessions, clock, {});
    clock.set(2 * DAY_MS);
    const { forgotten } = sessions;
    await clock.pass(3 * MINUTE_MS);
    expect([sessions.count, sessions.forgotten]).toEqual([3, forgotten]);
    expect(logged).toEqual([]);
    await clock.pass(2 * 60 * MINUTE_MS);
    expect(sessions.count).toBe(0);
    expect(sessions.forgotten).toBeGreaterThan(forgotten);
  });
});
