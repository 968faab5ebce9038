import { describe, expect, it } from "vitest";
import { BudgetDay } from "../../src/domain/budget.ts";
import { BUDGETS, spent, USE } from "../kit/step/limit-cases.ts";
import { resultSignal, Walk } from "../kit/step/walk.ts";

/** Tests what a budget of 8 USD per day counts, and when a turn held back by it looks again. */

const started = (walk: Walk) => walk.hear({ type: "admitted" }, { type: "started", resumed: false }, { type: "ready" });
const running = (policy = {}) => started(new Walk({ ...BUDGETS, ...policy }).prompt("p1"));
const day = ({ ledger }: Walk) => BudgetDay.parse(ledger[0]?.value);
const told = (costUsdTotal: number) => ({ type: "spent", costUsdTotal, atStart: false }) as const;

describe("the cost counted in a budget", () => {
  it("a turn reserves an eighth, and its end charges the cost and gives the rest back", () => {
    const walk = running();
    expect(day(walk)).toMatchObject({ reserved: { p1: 1 }, spentUsd: 0 });
    walk.hear(told(0.2), resultSignal({ promptIds: ["p1"], costUsdTotal: 0.3 }), { type: "idle" });
    expect(day(walk)).toMatchObject({ reserved: {}, spentUsd: 0.3 });
  });

  it("a lost turn is charged with the last cost that its process has told", () => {
    const walk = running().hear(told(0.2), told(0.4), { type: "exited", code: null, signal: "SIGKILL" });
    expect(day(walk)).toMatchObject({ reserved: {}, spentUsd: 0.4 });
    expect(walk.state.totals.costUsd).toBe(0.4);
  });

  it("a session of an earlier version is charged with no cost from before the budget", () => {
    const walk = new Walk({ use: USE }).prompt("p1");
    started(walk).hear(resultSignal({ promptIds: ["p1"], costUsdTotal: 5 }), { type: "idle" });
    delete walk.state.chargedUsd;
    const later = new Walk(BUDGETS, walk).tick();
    expect(later.ledger).toEqual([]);
    later.prompt("p2").hear(resultSignal({ promptIds: ["p2"], costUsdTotal: 5.5 }), { type: "idle" });
    expect(day(later)).toMatchObject({ reserved: {}, spentUsd: 0.5 });
  });
});

describe("a turn that a budget holds back", () => {
  const waits = { ...BUDGETS, use: { ...BUDGETS.use, waitMaxMs: 100_000_000 }, onLimit: "wait" } as const;
  const held = (of: Partial<BudgetDay>) => spent(new Walk(waits), of).prompt("p1");
  const untilIn = ({ at, state }: Walk) => (state.waiting?.until ?? 0) - at;

  it("a turn held back by reservations alone looks again after a minute, otherwise at the end of the day", () => {
    expect(untilIn(held({ spentUsd: 4, reserved: { other: 4 } }))).toBeLessThan(63_000);
    expect(untilIn(held({ spentUsd: 8 }))).toBeGreaterThanOrEqual(86_400_000);
  });

  it("a server with a greater budget that takes the session over starts the turn at once", () => {
    const walk = held({ spentUsd: 8 });
    const recovered = (policy: object) => new Walk(policy, walk).take({ type: "recovered", at: walk.at });
    expect(recovered(waits).last.effects).toEqual([]);
    const budgets = waits.use.budgets.map((each) => ({ ...each, usdPerDay: 9 }));
    const { last } = recovered({ ...waits, use: { ...waits.use, budgets } });
    expect(last.effects).toMatchObject([{ type: "find-environment" }]);
  });
});
