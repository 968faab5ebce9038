import { expect, it } from "vitest";
import type { Connection } from "../kit/clients/connection.ts";
import { PAUSES } from "../kit/machines/node-faults.ts";
import { useNodes, type TestNode } from "../kit/machines/nodes.ts";
import {
  expectCalls,
  expectEnds,
  goOn,
  LOST,
  startAtGate,
  startLongCall,
  startWhole,
  wentOn,
} from "../kit/machines/turns.ts";
import { journal } from "../kit/machines/journal.ts";
import { describePostgres } from "../kit/postgres/database.ts";
import { half } from "../kit/runner/amount.ts";

/** A node that is frozen, or cut off from the database, for longer than its lease; and for a shorter time. */

/** Time for which a machine that was frozen may write on, ms. */
const MAX_OVERLAP_MS = 1_000;

describePostgres("a node away for longer than its lease", () => {
  const nodes = useNodes({ hasVolume: true });

  it.each(half(Object.entries(PAUSES)))(
    "a node %s loses its turn once, runs nothing beside the next node, and serves again",
    async (_, fault) => {
      const { a, b, shared, world } = nodes;
      const [client, other] = await Promise.all([a.connect(), b.connect()]);
      const written = await startLongCall(client, { world, below: shared });
      const ended = other.end(written.sessionId);
      await fault.begin(a);
      expect(await ended).toMatchObject(LOST);
      expect(fault.endsClaude ? a.running(written.sessionId) : []).toEqual([]);
      expect(await goOn(other, written, "two")).toMatchObject(wentOn("two"));
      await fault.end(a);
      await expect.poll(() => a.running(written.sessionId)).toEqual([]);
      await expectServes(a, written.sessionId);
      expectCalls(written, ["one", "two"], fault.endsClaude ? 0 : MAX_OVERLAP_MS);
      await expectEnds(await a.connect(), written, ["lost", "ok"]);
      expect(await goOn(await a.connect(), written, "three")).toMatchObject(wentOn("three"));
    },
  );

  /** Expects that the node shows the session as it is, and runs new ones. */
  async function expectServes(node: TestNode, sessionId: string): Promise<void> {
    const client: Connection = await node.connect();
    const session = async () =>
      (await client.call("claude_code_session", { action: "get", sessionId }).catch(() => undefined))?.sessions[0];
    await expect.poll(session).toMatchObject({ status: "idle" });
    await startWhole(client, { world: nodes.world, below: nodes.shared });
  }
});

describePostgres("a node away for a shorter time than its lease", () => {
  const nodes = useNodes({ leaseMs: 20_000, hasVolume: true });

  it.each(["cut", "freeze"] as const)(
    "a turn goes on after the network to the database was down for a shorter time than the lease (%s)",
    async (fault) => {
      const { a, b, shared, world } = nodes;
      const [client, other] = await Promise.all([a.connect(), b.connect()]);
      const written = await startAtGate(client, { world, below: shared }, fault);
      const ended = other.end(written.sessionId);
      const here = client.end(written.sessionId);
      const logged = a.server.stderr().length;
      a.network[fault]();
      world.model.release(fault);
      await expect.poll(() => a.server.stderr().slice(logged)).toContain("lease not renewed");
      a.network.continue();
      expect(await ended).toMatchObject({ status: "idle", result: { result: "Done." } });
      expect(await here).toMatchObject({ status: "idle", result: { result: "Done." } });
      expectCalls(written, ["one"]);
      expect(journal(written.file)).toHaveLength(2);
      expect(await goOn(other, written, "two")).toMatchObject(wentOn("two"));
      await expectEnds(other, written, ["ok", "ok"]);
    },
  );
});
