import { afterAll, beforeAll, expect, it } from "vitest";

import { load } from "../../bench/over-http/run.mjs";
import { createWorld, type World } from "../../bench/world.mjs";

/** The load of `npm run bench -- load`, shorter, and judged by what must be right on any machine: docs/benchmarks.md has times. */

const SECONDS = Number(process.env["LOAD_SECONDS"] ?? 60);
/** In so short a time the server still learns: a leak of ten minutes shows in the benchmark, here a gross one. */
const GROWTH_MOST = 1.6;

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(async () => world.close());

it(
  `200 clients hold waits on 50 sessions for ${String(SECONDS)} s: nothing is lost, fails, grows or is left`,
  { timeout: SECONDS * 1_000 + 300_000 },
  async () => {
    const size = { clients: 200, sessions: 50, maxLive: 8, forMs: SECONDS * 1_000 };
    const found = await load({ world, ...size, progress: () => undefined });
    const { counts, logs, thirds } = found;
    const { failed, refused, unknown, unreachable } = counts;
    expect({ failed, refused, unknown, unreachable }).toEqual({
      failed: [],
      refused: {},
      unknown: 0,
      unreachable: [],
    });
    const { holes, missed, changed, invented } = logs;
    expect({ holes, missed, changed, invented, twice: found.twice }).toEqual({
      holes: 0,
      missed: 0,
      changed: 0,
      invented: 0,
      twice: 0,
    });
    // Else there was no load.
    expect(found.turns).toBeGreaterThan(0);
    expect(found.asked).toBeGreaterThan(0);
    expect(counts.vanished).toBeGreaterThan(0);
    expect(counts.events).toBeGreaterThan(logs.events);
    expect(thirds?.growth ?? 1).toBeLessThan(GROWTH_MOST);
    expect(found.handlesMore ?? 0).toBeLessThanOrEqual(0);
    expect({ children: found.children, exitCode: found.exitCode }).toEqual({ children: 0, exitCode: 0 });
    expect(found.complaints).toEqual([]);
  },
);
