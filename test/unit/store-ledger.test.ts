import { afterEach, beforeEach, expect, it } from "vitest";
import { dayIn, windowsIn } from "../../src/domain/ledger.ts";
import { EMPTY_DAY } from "../../src/domain/budget.ts";
import { ConflictError, type SessionBackend } from "../../src/engine/ports.ts";
import { changeStore } from "../kit/store/damage.ts";
import { StoreFile } from "../kit/store/files.ts";
import { claimLease, notice, session, T0, TTL } from "../kit/store/vocabulary.ts";

/** The ledger in a file: damaged entries, and sessions that are kept in memory. */

let store: StoreFile;
let node: SessionBackend;

beforeEach(async () => {
  store = await StoreFile.make();
  node = store.connect("node");
  await node.leases.heartbeat(TTL);
});
afterEach(async () => store.close());

const DAY = { ...EMPTY_DAY, spentUsd: 2 };

it.each([
  ["invalid JSON", "value = '{'"],
  ["an array", "value = '[1]'"],
  ["bytes", "value = x'00ff'"],
  ["a number", "value = 7"],
  ["another value", `value = '{"spentUsd":"much","windows":[]}'`],
  [
    "a time beyond all dates",
    `value = '{"configFolder":"/x","paidBy":"x","windows":{"five_hour":{"resetsAt":1e300,"source":"usage","at":1}}}'`,
  ],
  ["another revision", "rev = 'x', value = ''"],
  ["another time", "at = 'x', value = 'null'"],
])("an entry of the ledger damaged to %s counts as absent, and the next change mends it", async (_, damage) => {
  const key = "budget:2026-11-28:principal:local";
  await node.ledger.apply([{ key, rev: 0, value: DAY }]);
  await changeStore(store.file, `UPDATE ledger SET ${damage}`);
  const [entry] = await node.ledger.read([key]);
  expect([dayIn(entry?.value), windowsIn(entry?.value)]).toEqual([EMPTY_DAY, undefined]);
  expect(await node.ledger.list("budget:")).toEqual([entry]);
  await node.ledger.apply([{ key, rev: entry!.rev, value: DAY }]);
  expect(await node.ledger.read([key])).toMatchObject([{ value: DAY, rev: entry!.rev + 1 }]);
});

it("a session kept in memory shares the ledger of the file, and stores nothing if the ledger refuses", async () => {
  const { id } = (await node.rows.create(session({ spec: { cwd: "/repo", persistSession: false } }))).record;
  const lease = await claimLease(node, id);
  const { state } = (await node.rows.get(id))!;
  const change = { events: [notice("1")], at: T0, state: { ...state, lastEventId: 1 } };
  const ledger = [{ key: "k", rev: 0, value: { n: 1 } }];
  await expect(node.log.append(lease, { ...change, ledger: [{ key: "k", rev: 1 }] })).rejects.toThrow(ConflictError);
  expect(await node.log.read(id, 1, 9)).toEqual([]);
  await node.log.append(lease, { ...change, ledger });
  expect(await node.log.read(id, 1, 9)).toHaveLength(1);
  expect(await store.connect("other").ledger.read(["k"])).toMatchObject([{ value: { n: 1 }, rev: 1 }]);
});
