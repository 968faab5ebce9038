import { afterAll, beforeAll, expect, it } from "vitest";

import { load } from "../../bench/over-http/run.mjs";
import { createWorld, type World } from "../../bench/world.mjs";
import { environmentOf } from "../kit/world.ts";

/** The load of `npm run bench -- load`, shorter, with bounds that hold on any machine; docs/benchmarks.md has times. */

const { agent, clients, growthMost, seconds, sessions, waitMs } =
  process.env["LOAD"] === "full"
    ? { agent: "real" as const, clients: 200, sessions: 50, seconds: 600, growthMost: 1.2, waitMs: 20_000 }
    : // Short, so that the server still warms up: only a gross leak shows.
      { agent: "stand-in" as const, clients: 60, sessions: 10, seconds: 8, growthMost: 4, waitMs: 5_000 };

let world: World;
beforeAll(async () => {
  const { environment, ...own } = await createWorld();
  // The stand-in leaves the processor to the HTTP clients, which see no difference.
  world = { ...own, environment: { ...environment, ...environmentOf(agent) } };
});
afterAll(async () => world.close());

it(
  `${String(clients)} clients hold waits on ${String(sessions)} sessions for ${String(seconds)} s; nothing is lost, fails, grows or is left behind`,
  { timeout: seconds * 1_000 + 300_000 },
  async () => {
    const size = { clients, sessions, maxLive: 8, forMs: seconds * 1_000, waitMs };
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
    // Zero would mean that there was no load.
    expect(found.turns).toBeGreaterThan(0);
    expect(found.asked).toBeGreaterThan(0);
    expect(counts.vanished).toBeGreaterThan(0);
    expect(counts.events).toBeGreaterThan(logs.events);
    expect(thirds?.growth ?? 1).toBeLessThan(growthMost);
    expect(found.handlesMore ?? 0).toBeLessThanOrEqual(0);
    expect({ children: found.children, exitCode: found.exitCode }).toEqual({ children: 0, exitCode: 0 });
    expect(found.complaints).toEqual([]);
  },
);
