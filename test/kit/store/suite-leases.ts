import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { FencedError } from "../../../src/engine/ports.ts";
import { claimLease, notice, session, TTL, write, type World } from "./vocabulary.ts";

/** Tests of the ownership of sessions. */
export function leaseTests(world: () => World): void {
  it("only one of two claimers gets a session, until it is released", async () => {
    const { a, b } = world();
    const { id } = (await a.rows.create(session())).record;
    const claims = await Promise.all([a.leases.claim(id), b.leases.claim(id)]);
    const [owner, other] = claims[0] ? [a, b] : [b, a];
    const first = { sessionId: id, nodeId: owner.nodeId, epoch: 1, tookOver: false };
    expect(claims.filter((lease) => lease !== undefined)).toEqual([first]);
    expect((await other.rows.get(id))!.owner).toEqual({ nodeId: owner.nodeId, alive: true });
    const again = await claimLease(owner, id);
    expect(again).toEqual({ ...first, epoch: 2 });
    await other.leases.release(first);
    expect(await other.leases.claim(id)).toBeUndefined();
    await owner.leases.release(again);
    for (const lease of [first, again]) await expect(write(owner, lease, [])).rejects.toThrow(FencedError);
    expect(await other.leases.claim(id)).toMatchObject({ nodeId: other.nodeId, epoch: 3, tookOver: false });
  });

  it("an owner with an expired lease can write until another node has claimed the session", async () => {
    const { a, b, expireLeaseOfA: outlived, createOwned: owned, readFromB: seen, store } = world();
    const { id, lease } = await owned();
    await store.advance(TTL - 1000);
    await Promise.all([a.leases.heartbeat(TTL), b.leases.heartbeat(3 * TTL)]);
    await store.advance(TTL - 1000);
    expect(await b.leases.claim(id)).toBeUndefined();
    await outlived();
    expect((await b.rows.get(id))!.owner).toEqual({ nodeId: "a", alive: false });
    await write(a, lease, [notice("1")]);
    const taken = await claimLease(b, id);
    expect(taken).toMatchObject({ nodeId: "b", tookOver: true });
    const before = await seen(id);
    await expect(write(a, lease, [notice("late")])).rejects.toThrow(FencedError);
    await a.leases.release(lease);
    await a.leases.heartbeat(TTL);
    expect([await a.leases.claim(id), ...(await seen(id))]).toEqual([undefined, ...before]);
    await write(b, taken, [notice("2")]);
  });

  it("a node that is not alive cannot claim a session", async () => {
    const { a, store } = world();
    const { id } = (await a.rows.create(session())).record;
    expect(await (await store.connect("new")).leases.claim(id)).toBeUndefined();
    await store.advance(TTL + 1);
    expect(await a.leases.claim(id)).toBeUndefined();
    await a.leases.heartbeat(TTL);
    expect([await a.leases.claim(randomUUID()), await a.leases.claim(id)]).toMatchObject([undefined, { nodeId: "a" }]);
  });
}
