import { expect, it } from "vitest";
import { systemClock } from "../../src/app/system-clock.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { PostgresStore } from "../kit/postgres/store.ts";
import { amount } from "../kit/runner/amount.ts";
import { RandomEngines } from "../kit/step/random-engines.ts";

describePostgres("two engines on PostgreSQL", () => {
  const database = useDatabase();

  it.each(Array.from({ length: amount(2, 20) }, () => Math.floor(Math.random() * 1e9)))(
    "random calls of two engines, which die, leave one log that has each answered call once (seed %i)",
    async (seed) => {
      const store = new PostgresStore(database());
      const engines = {
        clock: systemClock,
        connect: async (nodeId: string) => Promise.resolve(store.connect(nodeId, { clock: systemClock })),
        expire: async ({ nodeId }: { nodeId: string }) => store.expireLease(nodeId),
      };
      const run = new RandomEngines(engines, seed);
      await run.run(40);
      await store.close();
      expect(run.faults).toEqual([]);
      expect(run.counts.answered).toBeGreaterThan(40);
    },
  );
});
