import { expect, it } from "vitest";
import { EMPTY_DAY } from "../../src/domain/budget.ts";
import type { TurnEnded } from "../../src/domain/event.ts";
import { budgetKey, localDay } from "../../src/domain/ledger.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { walkTo } from "../kit/step/cases.ts";
import { BUDGETS } from "../kit/step/limit-cases.ts";
import { OPTIONS, twoNodes, type World } from "../kit/step/two-nodes.ts";
import { T0 } from "../kit/step/walk.ts";

/** Tests the server that goes on with a turn after a wait, possibly under other terms than the server that began the turn. */

const HOUR_MS = 3_600_000;

/** Lets a server find a session that waits at a limit, and the reset pass. Returns the end of the turn, if any. */
async function afterWait(
  { clock, a: { backend, engine } }: World,
  over: Partial<SessionOptions> = {},
): Promise<TurnEnded | undefined> {
  const { state } = walkTo("waiting at a limit, no process");
  const row = { id: "s", principal: "local", spec: { ...OPTIONS, ...over } };
  await backend.rows.create({ ...row, state: { ...state, lastEventId: 0 }, at: T0 });
  await engine.get("local", "s");
  clock.set(HOUR_MS);
  await clock.pass(70_000);
  const events = await backend.log.read("s", 1, 100);
  return events.flatMap((event) => (event.type === "turn.ended" ? [event.data] : []))[0];
}

it("a turn goes on after a wait with a process of the server that has found its session", async () => {
  const world = twoNodes();
  expect(await afterWait(world)).toBeUndefined();
  expect(world.a.runtime.lastProcess("s").processTag).toBe("s:2");
  await world.close();
});

it("a turn ends after a wait if the operator of the server that has found its session forbids the mode", async () => {
  const world = twoNodes();
  const message = expect.stringContaining("bypassPermissions is not allowed") as string;
  const ended = await afterWait(world, { permissionMode: "bypassPermissions" });
  expect(ended).toMatchObject({ errorSubtype: "usage_limit", message });
  await world.close();
});

it("a turn ends after a wait if another program has opened its session meanwhile", async () => {
  const world = twoNodes();
  world.a.runtime.openIn = { pid: 4242, how: "cli" };
  expect(await afterWait(world)).toMatchObject({ errorSubtype: "usage_limit" });
  await world.close();
});

it("a start that a limit keeps from starting leaves no session, and a retry of an earlier start finds its session", async () => {
  const world = twoNodes();
  const { use } = BUDGETS;
  const node = world.connect("c", undefined, { useOf: () => use });
  const first = await node.open("begin", "k");
  const key = budgetKey(use.budgets[0]!, localDay(T0));
  await node.backend.ledger.update(key, () => ({ ...EMPTY_DAY, spentUsd: 8 }));
  for (const other of [undefined, "k2"])
    await expect(node.open("begin", other)).rejects.toMatchObject({ code: "SESSION_BUSY" });
  expect(await node.open("begin", "k")).toBe(first);
  expect((await node.engine.list({ principal: "local", limit: 9 })).map(({ id }) => id)).toEqual([first]);
  await world.close();
});

it("sessions that begin at once leave none behind whose first turn the budget has no more money for", async () => {
  const world = twoNodes();
  const node = world.connect("c", undefined, { useOf: () => BUDGETS.use });
  const begin = Promise.allSettled(Array.from({ length: 10 }, async () => node.open()));
  await world.clock.pass(20_000);
  const begun = await begin;
  const ids = begun.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  expect(ids).toHaveLength(8);
  const listed = await node.engine.list({ principal: "local", limit: 20 });
  expect(listed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  await world.close();
});
