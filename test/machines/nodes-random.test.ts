import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { countLost, Watcher } from "../kit/faults/watcher.ts";
import { randoms, report } from "../kit/faults/figures.ts";
import { KILLS, PAUSES } from "../kit/machines/node-faults.ts";
import { useNodes, type TestNode } from "../kit/machines/nodes.ts";
import { journal, overlapMs, repeated } from "../kit/machines/journal.ts";
import { goOn, startWhole, wentOn, type Written } from "../kit/machines/turns.ts";
import { describePostgres } from "../kit/postgres/database.ts";
import { amount } from "../kit/runner/amount.ts";

const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
const rounds = amount(1, 20);
/** Duration of a turn, ms, which writes a line each 50 ms. */
const TURN_MS = 2_000;
const LONG = { lines: 30, waitMs: 0 };
/** Time for which a machine that was frozen may write on, ms. */
const MAX_OVERLAP_MS = 1_000;

describePostgres(`faults of two nodes at random moments (seed ${String(seed)})`, () => {
  const nodes = useNodes({ hasVolume: true });
  const random = randoms(seed);
  const one = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;

  it(
    `${String(rounds)} kills, freezes and cuts lose no event that a caller saw, repeat no tool call and leave no process`,
    { timeout: rounds * 60_000 },
    async () => {
      const { a, b, shared, world } = nodes;
      const both = [a, b];
      const from = { world, below: shared };
      const sessions = await Promise.all(both.map(async (node) => startWhole(await node.connect(), from)));
      const sum = { lost: 0, leftOver: 0 };
      const found: Record<string, number> = {};
      for (let round = 0; round < rounds; round += 1) {
        const session = one(sessions);
        const watchers = await Promise.all(both.map(async (node) => new Watcher(await node.connect())));
        const prompted = await goOn(await one(both).connect(), session, `fault-${String(round)}`, LONG);
        const watching = watchers.map(async (watcher) => watcher.follow(session.sessionId, prompted.nextCursor));
        const [hit, other] = one([both, both.toReversed()]) as [TestNode, TestNode];
        const [name, fault] = one(Object.entries({ ...KILLS, ...PAUSES }));
        await sleep(random() * TURN_MS);
        await fault.begin(hit);
        const { result, status } = await (await other.connect()).end(session.sessionId);
        const outcome = `${name}: ${result?.errorSubtype ?? status}`;
        found[outcome] = (found[outcome] ?? 0) + 1;
        await fault.end(hit);
        await Promise.all(watching);
        for (const node of both) sum.lost += await lostAt(node, session, watchers);
        const call = `after-${String(round)}`;
        expect(await goOn(await one(both).connect(), session, call)).toMatchObject(wentOn(call));
      }
      for (const { file } of sessions) {
        expect(repeated(journal(file))).toEqual([]);
        expect(overlapMs(journal(file))).toBeLessThanOrEqual(MAX_OVERLAP_MS);
      }
      await Promise.all(both.map(async (node) => node.stop()));
      sum.leftOver = world.processes().length;
      report({ fault: "one of two nodes", runs: rounds, ...sum, note: JSON.stringify(found) });
      expect(sum).toEqual({ lost: 0, leftOver: 0 });
    },
  );
});

/** Returns the number of events that a watcher saw, and that the node does not have. */
async function lostAt(node: TestNode, { sessionId }: Written, watchers: readonly Watcher[]): Promise<number> {
  const client = await node.connect();
  const lost = await Promise.all(watchers.map(async ({ seen }) => countLost(client, sessionId, seen)));
  return lost.reduce((sum, each) => sum + each, 0);
}
