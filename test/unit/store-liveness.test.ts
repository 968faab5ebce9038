import { beforeEach, expect, it } from "vitest";

import { LivenessCheck, WATCH_MS } from "../../src/store/liveness.ts";

/** How long an expired lease of a node that cannot be seen from here is watched. */

const EXPIRES_AT = 30_000;
const NODE = { nodeId: "b", host: "elsewhere", pid: null, startedAt: null, expiresAt: EXPIRES_AT };
const START = { pid: 1, startedAt: "1" };

let tick: number;
let now: number;
let liveness: LivenessCheck;
beforeEach(() => {
  [tick, now] = [0, EXPIRES_AT];
  const clock = { now: () => now, tick: () => tick };
  liveness = new LivenessCheck({ nodeId: "a", process: START, isRunning: async () => Promise.resolve(true), clock });
});
const isAlive = async () => liveness.begin()(NODE);

it("begins when it is first seen, and again after another time of day has shown that it had not expired", async () => {
  expect(await isAlive()).toBe(true);
  tick = WATCH_MS;
  expect(await isAlive()).toBe(true);
  now = EXPIRES_AT - 1;
  expect(await isAlive()).toBe(true);
  [tick, now] = [2 * WATCH_MS, EXPIRES_AT];
  expect(await isAlive()).toBe(true);
  tick = 3 * WATCH_MS;
  expect(await isAlive()).toBe(true);
  tick += 1;
  expect(await isAlive()).toBe(false);
});
