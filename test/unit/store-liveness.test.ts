import { beforeEach, expect, it } from "vitest";

import { LivenessCheck, WATCH_MS } from "../../src/store/liveness.ts";

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
const isAlive = async () => liveness.createCheck()(NODE);

it("the watch of an expired lease begins at first sight, and anew after the clock has shown the lease unexpired", async () => {
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
