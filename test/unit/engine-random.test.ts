import { expect, it } from "vitest";
import { amount } from "../kit/runner/amount.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { RandomEngines } from "../kit/step/random-engines.ts";
import { LEASE_MS } from "../kit/step/two-nodes.ts";
import { memoryStore } from "../kit/store/memory.ts";

it.each(Array.from({ length: amount(2, 100) }, () => Math.floor(Math.random() * 1e9)))(
  "random calls of two engines, which die, leave one log that has each answered call once (seed %i)",
  async (seed) => {
    const clock = new ManualClock();
    const store = memoryStore(clock);
    const run = new RandomEngines(
      {
        clock,
        connect: async (nodeId) => Promise.resolve(store.connect(nodeId)),
        expire: async () => clock.pass(2 * LEASE_MS),
      },
      seed,
    );
    await run.run(40);
    expect(run.faults).toEqual([]);
    expect(run.counts.answered).toBeGreaterThan(40);
  },
);
