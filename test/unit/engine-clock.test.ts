import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { AwakeClock } from "../../src/engine/clock.ts";
import { ClockWatch } from "../../src/engine/retention.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { twoNodes } from "../kit/step/two-nodes.ts";
import { POLICY, SECOND } from "../kit/step/walk.ts";

const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;
const JUMPS = [40 * SECOND, -40 * SECOND, HOUR, -HOUR, 5 * HOUR, 400 * DAY, -400 * DAY];

describe("the awake clock", () => {
  let at: number;
  let clock: AwakeClock;
  beforeEach(() => {
    vi.useFakeTimers();
    at = 0;
    clock = new AwakeClock({ now: () => 0, monotonic: () => at, elapsed: () => at });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const pass = (ms: number, step = SECOND): void => {
    for (let passed = 0; passed < ms; passed += step) {
      at += step;
      vi.advanceTimersByTime(step);
    }
  };
  /** Advances the system clock while no timer runs. */
  const sleep = (ms: number): void => void (at += ms);

  it("the awake clock measures elapsed time, for timers and for readings alike", () => {
    const done = vi.fn<() => void>();
    clock.after(60 * SECOND, done);
    pass(59 * SECOND);
    expect([clock.tick(), done.mock.calls.length]).toEqual([59 * SECOND, 0]);
    pass(SECOND);
    expect(done).toHaveBeenCalledTimes(1);
  });

  it("the awake clock stops while the machine sleeps and the system clock advances", () => {
    const done = vi.fn<() => void>();
    clock.after(60 * SECOND, done);
    pass(30 * SECOND);
    sleep(8 * HOUR);
    pass(20 * SECOND);
    expect(done).not.toHaveBeenCalled();
    expect(clock.tick()).toBeLessThan(60 * SECOND);
    pass(10 * SECOND);
    expect(done).toHaveBeenCalledTimes(1);
  });

  it("the awake clock counts a gap between readings in full up to 15 s, and a longer gap as 5 s", () => {
    clock.after(HOUR, () => undefined);
    sleep(15 * SECOND);
    expect(clock.tick()).toBe(15 * SECOND);
    sleep(15 * SECOND + 1);
    expect(clock.tick()).toBe(20 * SECOND);
  });

  it.each([
    [2 * SECOND, 2],
    [5 * SECOND, 2],
    [10 * SECOND, 4],
    [60 * SECOND, 40],
    [HOUR, 40],
  ])("a limit of %i ms loses at most an eighth to a freeze of %i s or more", (limit, frozenS) => {
    const done = vi.fn<() => void>();
    clock.after(limit, done, { isLimit: true });
    // A timer without `isLimit`, such as the renewal of a lease, must still fire.
    const renewed = vi.fn<() => void>();
    clock.after(5 * SECOND, renewed);
    for (const frozen of [frozenS * SECOND, HOUR]) {
      const before = clock.tick();
      sleep(frozen);
      expect(clock.tick() - before).toBeLessThanOrEqual(limit / 8);
    }
    expect(done).not.toHaveBeenCalled();
    pass(limit, Math.min(SECOND, limit / 20));
    expect(done).toHaveBeenCalledTimes(1);
    pass(5 * SECOND);
    expect(renewed).toHaveBeenCalledTimes(1);
  });

  it("the awake clock advances without a timer, and a cancelled timer never fires", () => {
    const done = vi.fn<() => void>();
    clock.after(SECOND, done)();
    sleep(HOUR);
    expect(clock.tick()).toBe(HOUR);
    pass(HOUR);
    expect(done).not.toHaveBeenCalled();
  });
});

describe.each(JUMPS)("a jump of the system clock by %i ms", (jump) => {
  it("no turn, request or idle process ends early after the system clock jumps", async () => {
    const world = twoNodes();
    const { a, b, clock } = world;
    const [running, asking] = [await a.open(), await a.openWithRequest()];
    const idle = await a.openIdle();
    const left = (await a.engine.get("local", asking)).state.requests[0]!.expiresAt - clock.now();
    clock.set(jump);
    await clock.pass(60 * SECOND);
    for (const { engine } of [a, b]) {
      expect((await engine.get("local", running)).state.turn).not.toBeNull();
      expect((await engine.get("local", idle)).state.process.phase).toBe("live");
      const { requests } = (await engine.get("local", asking)).state;
      expect(requests).toHaveLength(1);
      // `expiresAt` is corrected by the jump.
      expect(requests[0]!.expiresAt - clock.now()).toBe(left - 60 * SECOND);
    }
    await b.engine.answer(LOCAL_CALLER, asking, { requestId: "r1", decision: "allow", by: "caller" });
    for (const id of [running, asking]) {
      a.runtime.lastProcess(id).finish();
      expect(await b.waitForEvent(id, "turn.ended")).toMatchObject({ data: { outcome: "done" } });
    }
    await clock.pass(POLICY.idleProcessMs);
    expect(a.runtime.lastProcess(idle).gone).toBe(true);
    await world.close();
  });

  it("no session is deleted by age for an hour after the system clock jumps by more than a day", () => {
    const clock = new ManualClock();
    const ages = new ClockWatch(clock);
    expect(ages.isTrusted()).toBe(true);
    clock.set(jump);
    expect(ages.isTrusted()).toBe(Math.abs(jump) <= DAY);
    clock.advance(HOUR - 1);
    expect(ages.isTrusted()).toBe(Math.abs(jump) <= DAY);
    clock.advance(1);
    expect(ages.isTrusted()).toBe(true);
  });
});
