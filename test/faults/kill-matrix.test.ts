import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";

import { isFull, randoms, report } from "../kit/faults/figures.ts";
import { Load, type Program, PROGRAMS } from "../kit/faults/load.ts";
import { useWorld } from "../kit/world.ts";

/** Kills each program of a turn under load, at random moments: every turn must have an outcome. */

const world = useWorld({ agent: isFull ? "real" : "stand-in" });
const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
const moments = isFull ? 6 : 2;
/** Time from the connection of the clients to the end of most turns, ms. */
const MAX_KILL_MS = isFull ? 5_000 : 2_500;

/** Permitted outcomes of turns: only turns that lose their Claude Code may end other than `done`. */
const PERMITTED: Record<Program, RegExp> = {
  client: /^done$/,
  proxy: /^done$/,
  daemon: /^done$/,
  shim: /^(done|lost|start_failed)$/,
  reaper: /^done$/,
  "Claude Code": /^(done|lost|start_failed)$/,
};

it.concurrent.each(PROGRAMS.map((program, at) => [program, seed + at] as const))(
  `every turn has an outcome when the %s is killed under load, ${String(moments)} times (seed %i)`,
  { timeout: moments * 120_000 },
  async (program, ownSeed) => {
    const random = randoms(ownSeed);
    const load = new Load(world, random);
    const found: Record<string, number> = {};
    let leftOver = 0;
    for (let run = 0; run < moments; run += 1) {
      const { begun } = await load.begin();
      await sleep(((run + random()) / moments) * MAX_KILL_MS);
      await load.kill(program);
      const started = await begun;
      const outcomes = await load.settle();
      // At least the sessions of the client that was not killed; a daemon killed at once has stored no session yet.
      expect(outcomes.length).toBeGreaterThanOrEqual(program === "daemon" ? started : 3);
      for (const outcome of outcomes) {
        found[outcome] = (found[outcome] ?? 0) + 1;
        expect(outcome).toMatch(PERMITTED[program]);
      }
      leftOver += await load.leftOver();
    }
    expect(leftOver).toBe(0);
    const note = `turns ${JSON.stringify(found)}`;
    report({ fault: `${program} killed under load`, runs: moments, lost: 0, leftOver, note });
  },
);
