import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shortTime } from "../../console/src/parts/format.ts";
import { waitWords, windowWords } from "../../console/src/parts/wait-words.ts";
import { budgetMeter, windowMeters } from "../../console/src/usage/plan-words.ts";
import { readPlan } from "../../src/console/plan.ts";
import { buildDetail } from "../../src/console/rows.ts";
import { Titles } from "../../src/console/titles.ts";
import { EMPTY_DAY, type Budget } from "../../src/domain/budget.ts";
import { accountKey, budgetKey, localDay } from "../../src/domain/ledger.ts";
import { windowName, type AccountWindows } from "../../src/domain/plan.ts";
import type { Caller } from "../../src/domain/principal.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import type { Engine } from "../../src/engine/api.ts";
import { UNLIMITED_USE } from "../../src/engine/policy/policy.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { readUse } from "../../src/engine/session/use.ts";
import { ended, fold, type Draft } from "../kit/browser/timeline.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { session } from "../kit/store/vocabulary.ts";

/** Plan windows, waits at limits and budgets: their wire, and their words on the page. */

const NOW = new Date(2026, 2, 10, 12, 0).getTime();
const HOUR = 3_600_000;
const LOGIN = { configFolder: "/home/ann/.claude", paidBy: "the Claude login" };
const fiveHour = { usedPercent: 90, resetsAt: NOW + HOUR, source: "headers", at: NOW - 60_000 } as const;

describe("the windows and budgets that the page receives", () => {
  let node: SessionBackend;
  beforeEach(() => {
    node = memoryStore({ tick: () => NOW }).connect("a");
  });
  afterEach(async () => node.close());

  const budgetOf = (name: string): Budget => ({ scope: "principal", name, usdPerDay: 10 });
  /** Account of each principal. The environment of `far` is unknown to this server. */
  const accounts: Record<string, object> = {
    ann: { id: "account:1", ...LOGIN, hasWindows: true },
    bob: {
      id: "ANTHROPIC_API_KEY:2",
      configFolder: "/home/bob/.claude",
      paidBy: "ANTHROPIC_API_KEY",
      hasWindows: false,
    },
  };
  const environments = {
    identityOf: () => LOGIN,
    accountOf: async (_: string, principal: string) => Promise.resolve(accounts[principal]),
  };
  const engine = () =>
    ({
      list: async (query) => node.rows.list(query),
      use: async (principal, id) => {
        const useOf = () => ({ ...UNLIMITED_USE, reserve: { fiveHour: 15 }, budgets: [budgetOf(principal)] });
        const record = await node.rows.get(id);
        return readUse(
          { backend: node, clock: { now: () => NOW }, runtime: { environments: environments as never }, useOf },
          record as never,
        );
      },
    }) satisfies Partial<Engine> as unknown as Engine;
  const read = async (principal: string, scopes: Caller["scopes"] = ["read"]) =>
    readPlan({ engine: engine(), store: node }, { principal, scopes }, NOW);

  beforeEach(async () => {
    const windows: AccountWindows = { ...LOGIN, windows: { five_hour: fiveHour } };
    await node.ledger.update(accountKey("account:1"), () => windows);
    await node.ledger.update(accountKey("account:9"), () => ({ ...windows, configFolder: "/other" }));
    for (const [name, spentUsd] of [
      ["ann", 4],
      ["gone", 1],
    ] as const)
      await node.ledger.update(budgetKey(budgetOf(name), localDay(NOW)), () => ({
        ...EMPTY_DAY,
        spentUsd,
        reserved: { t: 0.5 },
      }));
    await node.ledger.update(budgetKey(budgetOf("ann"), "2026-03-09"), () => ({ ...EMPTY_DAY, spentUsd: 99 }));
    for (const principal of ["ann", "ann", "bob", "far"])
      await node.rows.create(session({ principal, state: { ...initialState(NOW), identity: LOGIN } }));
  });

  it("a principal receives the accounts and budgets of its own sessions only", async () => {
    expect(await read("ann")).toEqual({
      accounts: [{ ...accounts["ann"], windows: { five_hour: fiveHour }, reserve: { fiveHour: 15, sevenDay: 0 } }],
      budgets: [{ ...budgetOf("ann"), spentUsd: 4, reservedUsd: 0.5, unknownUsd: 0 }],
    });
    const { accounts: ofBob, budgets } = await read("bob");
    expect(ofBob).toMatchObject([{ paidBy: "ANTHROPIC_API_KEY", hasWindows: false, windows: {} }]);
    expect(budgets).toMatchObject([{ name: "bob", spentUsd: 0, usdPerDay: 10 }]);
    expect((await read("far")).accounts).toEqual([]);
    expect(await read("nobody")).toEqual({ accounts: [], budgets: [] });
  });

  it.each<[string, Caller["scopes"]]>([
    ["local", ["read"]],
    ["root", ["read", "admin"]],
  ])("the operator (%s) receives all accounts and the budgets of today", async (principal, scopes) => {
    const plan = await read(principal, scopes);
    expect(plan.accounts.map(({ configFolder, reserve }) => [configFolder, reserve?.fiveHour])).toEqual([
      [LOGIN.configFolder, 15],
      ["/other", undefined],
    ]);
    expect(plan.budgets).toEqual([
      { ...budgetOf("ann"), spentUsd: 4, reservedUsd: 0.5, unknownUsd: 0 },
      { scope: "principal", name: "gone", spentUsd: 1, reservedUsd: 0.5, unknownUsd: 0 },
    ]);
  });

  it("a session has its wait, and the refused request that it can send again while no turn runs", async () => {
    const detail = async (over: Partial<SessionState>) => {
      const state = { ...initialState(NOW), ...over };
      const record = { ...session({ state }), createdAt: NOW, updatedAt: NOW, title: "t" };
      return buildDetail({ engine: engine(), titles: new Titles(engine()) }, record as never);
    };
    const limit = { window: "five_hour", resetsAt: NOW + HOUR };
    const until = Date.UTC(2100, 0);
    const waiting = { kind: "plan_reserve", window: "seven_day", until, leftMs: 5, since: NOW } as const;
    expect(await detail({ waiting, refused: limit })).toMatchObject({
      waiting: { kind: "plan_reserve", window: "seven_day", until },
      refused: limit,
    });
    const closed = { reason: "cancelled", by: "x", at: NOW } as const;
    const over = await detail({ waiting, refused: limit, closed });
    expect([over.waiting, over.refused]).toEqual([undefined, undefined]);
  });
});

describe("waits and windows in words", () => {
  it("the page and the server have the same names for windows", () => {
    const names = ["five_hour", "seven_day", "seven_day_opus", "seven_day_sonnet", "constructor"];
    expect(names.map(windowWords)).toEqual(names.map(windowName));
  });

  it.each<[Parameters<typeof waitWords>[0], string]>([
    [{ kind: "usage_limit", window: "five_hour", until: NOW + HOUR }, "waits for the 5-hour window until TIME"],
    [{ kind: "usage_limit", window: "five_hour", until: NOW }, "waited for the 5-hour window"],
    [{ kind: "usage_limit" }, "waits for the plan"],
    [{ kind: "plan_reserve", window: "seven_day" }, "waits for the reserve of the weekly window"],
    [{ kind: "budget", until: NOW + HOUR }, "waits for the day’s budget until TIME"],
    [{ kind: "environment" }, "waits for a client of its environment"],
    [{ kind: "slot", ahead: 0 }, "waits for a slot (next to start)"],
    [{ kind: "slot", ahead: 3 }, "waits for a slot (3 ahead)"],
  ])("a session in the wait %o %s", (waiting, words) => {
    expect(waitWords(waiting, NOW)).toBe(words.replace("TIME", shortTime(NOW + HOUR, NOW)));
  });

  it("a time on another day has the day of the week, and a distant one the date", () => {
    const [today, soon, late] = [0, 1, 20].map((days) => shortTime(NOW + days * 24 * HOUR, NOW));
    expect(soon?.endsWith(today ?? "?")).toBe(true);
    expect([today, soon, late].map((words = "") => /Wed/.test(words) || /30/.test(words))).toEqual([false, true, true]);
  });

  it("a window is a meter with its share, the line of the reserve, the reset and the age of the knowledge", () => {
    const account = { ...LOGIN, id: "a", hasWindows: true, reserve: { fiveHour: 15 } };
    const meters = windowMeters(
      {
        ...account,
        windows: {
          five_hour: fiveHour,
          seven_day_opus: { isRejected: true, resetsAt: NOW + HOUR, source: "rejection", at: NOW - 1 },
        },
      },
      NOW,
    );
    expect(meters).toMatchObject([
      { name: "5-hour window", used: 90, line: 85, isFull: true, value: "90 % used" },
      { name: "weekly window", used: 0, isFull: false, value: "nothing known, counts as free", notes: [] },
      { name: "weekly Opus window", used: 100, isFull: true, value: "used up" },
    ]);
    const time = shortTime(NOW + HOUR, NOW);
    expect(meters[0]?.notes).toEqual([
      "15 % kept for people, so agents stop",
      `resets ${time}, in 1 h 00 min`,
      "known 1 min ago",
    ]);
    expect(meters[2]?.notes.at(-1)).toBe("known from a rejection only");
    const [later] = windowMeters({ ...account, windows: { five_hour: fiveHour } }, NOW + HOUR);
    expect(later).toMatchObject({ used: 0, isFull: false, value: "free" });
  });

  it("a budget is a meter of the spent and reserved amounts, with those of unknown price", () => {
    const budget = { scope: "profile", name: "night", spentUsd: 6, reservedUsd: 2, unknownUsd: 1.5 } as const;
    expect(budgetMeter({ ...budget, usdPerDay: 8 })).toMatchObject({
      name: "profile night",
      used: 100,
      isFull: true,
      value: "$6.00 spent of $8.00 a day",
      notes: ["$2.00 reserved by running turns", "$1.50 of it at an unknown price"],
    });
    expect(budgetMeter(budget)).toMatchObject({ isFull: false, value: "$6.00 spent" });
  });
});

it("a wait at a limit is a line at once, and a report of the plan is quiet unless it refuses", () => {
  const notice = (kind: string, message: string, details?: object): Draft => ({
    type: "notice",
    data: { kind, message, details },
  });
  const report = (status: string) => notice("rate_limit", status, { rate_limit_info: { status } });
  const items = fold(
    report("allowed"),
    report("rejected"),
    notice("waiting", "Waits.", { kind: "usage_limit" }),
    notice("waiting", "A slot."),
    ended(),
  );
  expect(items.map((item) => (item.kind === "line" ? [item.tone, item.text] : item.kind))).toEqual([
    ["quiet", "allowed"],
    ["warn", "rejected"],
    ["quiet", "Waits."],
    "turn",
  ]);
});
