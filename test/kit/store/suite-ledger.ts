import { expect, it } from "vitest";
import type { JsonObject } from "../../../src/domain/json.ts";
import { ConflictError, FencedError, type LedgerChange, type SessionBackend } from "../../../src/engine/ports.ts";
import { NASTY, notice, range, T0, write, type World } from "./vocabulary.ts";

/** Tests of the ledger: small values that all nodes of a store share. */

const DAY_MS = 86_400_000;

const add = (value: JsonObject | undefined, n = 1): JsonObject => ({ sum: Number(value?.["sum"] ?? 0) + n });
const set = async (node: SessionBackend, key: string, value: JsonObject) => node.ledger.update(key, () => value);
const keysOf = async (node: SessionBackend, prefix: string) => (await node.ledger.list(prefix)).map(({ key }) => key);

async function readSum(node: SessionBackend, key: string): Promise<unknown> {
  return (await node.ledger.read([key]))[0]?.value["sum"];
}

/** Adds 1 as an owner does: reads, and tries again after a conflict. Resolves with the number of conflicts. */
async function addByReading(node: SessionBackend, key: string): Promise<number> {
  for (let conflicts = 0; ; conflicts += 1) {
    const [before] = await node.ledger.read([key]);
    const change = { key, rev: before?.rev ?? 0, value: add(before?.value) };
    const error = await node.ledger.apply([change]).catch((caught: unknown) => caught);
    if (error === undefined) return conflicts;
    expect(error).toBeInstanceOf(ConflictError);
  }
}

export function ledgerTests(world: () => World): void {
  it("entries of the ledger are read by key and listed by prefix, on every node", async () => {
    const { a, b } = world();
    const keys = ["plan:b", "plan:a", "plan:😀", `plan:${NASTY.replaceAll(/[\0\ud800-\udfff]/gu, "")}`];
    for (const key of [...keys, "budget:x", "plan", "plan;"]) await set(a, key, { text: NASTY });
    expect(await keysOf(b, "plan:")).toEqual(keys.toSorted());
    expect(await keysOf(b, "plan_")).toEqual([]);
    const [entry, ...others] = await b.ledger.read(["plan:a", "none", "plan:%"]);
    expect(entry).toEqual({ key: "plan:a", value: { text: NASTY }, rev: 1, at: expect.any(Number) as number });
    expect([others, await b.ledger.read([])]).toEqual([[], []]);
  });

  it("the revision of an entry counts its changes, and its time is that of the last change", async () => {
    const { a, b, store } = world();
    await a.ledger.update("k", () => undefined);
    expect(await b.ledger.read(["k"])).toEqual([]);
    await a.ledger.update("k", add);
    const [first] = await b.ledger.read(["k"]);
    await store.advance(1000);
    await b.ledger.update("k", add);
    await b.ledger.update("k", () => undefined);
    await a.ledger.apply([{ key: "k", rev: 2 }]);
    expect(await a.ledger.read(["k"])).toEqual([{ key: "k", value: { sum: 2 }, rev: 2, at: first!.at + 1000 }]);
  });

  it("changes of the ledger are applied together, or not at all if an entry has changed since it was read", async () => {
    const { a, b } = world();
    await a.ledger.apply([
      { key: "one", rev: 0, value: { n: 1 } },
      { key: "two", rev: 0, value: { n: 1 } },
    ]);
    const before = await b.ledger.list("");
    const good = { key: "three", rev: 0, value: { n: 2 } };
    for (const old of [
      { key: "one", rev: 0, value: { n: 2 } },
      { key: "two", rev: 2 },
      { key: "none", rev: 1 },
    ])
      await expect(b.ledger.apply([good, old])).rejects.toThrow(ConflictError);
    expect(await a.ledger.list("")).toEqual(before);
    await b.ledger.apply([good, { key: "one", rev: 1 }, { key: "two", rev: 1, value: { n: 2 } }]);
    expect((await a.ledger.list("")).map(({ key, rev }) => [key, rev])).toEqual([
      ["one", 1],
      ["three", 1],
      ["two", 2],
    ]);
  });

  it("an append stores its events and its changes of the ledger, or neither", async () => {
    const { a, b, createOwned: owned, readFromB: seen } = world();
    const { id, lease } = await owned();
    await set(b, "read", { n: 1 });
    const { state } = (await a.rows.get(id))!;
    const change = { events: [notice("1")], at: T0 + 1, state: { ...state, lastEventId: 1 } };
    const append = async (...ledger: LedgerChange[]) => a.log.append(lease, { ...change, ledger });
    const reserved = { key: "reserved", rev: 0, value: { usd: 1 } };
    const before = await seen(id);
    await expect(append(reserved, { key: "read", rev: 2 })).rejects.toThrow(ConflictError);
    await expect(append(reserved, { key: "read", rev: 0, value: { n: 2 } })).rejects.toThrow(ConflictError);
    const late = a.log.append({ ...lease, epoch: 0 }, { ...change, ledger: [reserved] });
    await expect(late).rejects.toThrow(FencedError);
    expect([await seen(id), await b.ledger.read(["reserved"])]).toEqual([before, []]);
    // The owner reads again, and steps again.
    await append(reserved, { key: "read", rev: 1 });
    expect(await seen(id)).toMatchObject([{ state: { lastEventId: 1 } }, [{ data: { message: "1" } }]]);
    const stored = await b.ledger.read(["reserved", "read"]);
    expect(new Map(stored.map(({ key, rev, value }) => [key, [rev, value]]))).toEqual(
      new Map([
        ["reserved", [1, { usd: 1 }]],
        ["read", [1, { n: 1 }]],
      ]),
    );
  });

  it("a refused change of the ledger spares all other writes of the node at the same moment", async () => {
    const { a, b, createOwned: owned } = world();
    const [one, two] = [await owned(), await owned()];
    const refused = a.ledger.apply([{ key: "k", rev: 7, value: {} }]);
    const all = await Promise.allSettled([
      write(a, one.lease, [notice("1")]),
      refused,
      a.ledger.update("k", add),
      write(a, two.lease, [notice("2")]),
    ]);
    expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect([await readSum(b, "k"), ...(await b.log.read(two.id, 1, 9)).map(({ id }) => id)]).toEqual([1, 1]);
  });

  it("of two nodes that change an entry from the same revision, exactly one wins, and no change is lost", async () => {
    const { a, b } = world();
    for (const rev of range(0, 9)) {
      const race = [a, b].map(async (node, n) => node.ledger.apply([{ key: "race", rev, value: { n } }]));
      const results = await Promise.allSettled(race);
      expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      const winner = results.findIndex(({ status }) => status === "fulfilled");
      expect(await a.ledger.read(["race"])).toMatchObject([{ rev: rev + 1, value: { n: winner } }]);
    }
    const nodes = range(1, 20).map((n) => (n % 2 ? a : b));
    const conflicts = await Promise.all(nodes.map(async (node) => addByReading(node, "sum")));
    await Promise.all(nodes.map(async (node) => node.ledger.update("sum", add)));
    expect([await readSum(a, "sum"), Math.max(...conflicts) > 0]).toEqual([40, true]);
  });

  it("a purge deletes entries of the ledger that nothing has changed for 60 days", async () => {
    const { a, b, store } = world();
    for (const key of ["old", "kept"]) await a.ledger.update(key, add);
    await store.advance(59 * DAY_MS);
    await b.ledger.update("kept", add);
    const forget = async () => b.maintenance.forget();
    await forget();
    expect(await keysOf(b, "")).toEqual(["kept", "old"]);
    await store.advance(1.5 * DAY_MS);
    await forget();
    expect(await keysOf(b, "")).toEqual(["kept"]);
    // A node that has read the entry before does not bring it back by itself.
    await expect(a.ledger.apply([{ key: "old", rev: 1, value: {} }])).rejects.toThrow(ConflictError);
  });
}
