import { describe, expect, it } from "vitest";

import { useOf } from "../../src/app/engine-limits.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";
import { refuseServerSettings } from "../../src/config/server-settings.ts";
import { UNLIMITED_USE } from "../../src/engine/policy/policy.ts";

/** Settings for the use of plans and of money. */

const FILE = "/settings.json";

function load(settings: unknown): Config {
  const readFile = () => JSON.stringify(settings);
  return loadConfig({ argv: [], env: { CLAUDE_CODE_MCP_CONFIG: FILE }, readFile });
}

const reserve = { fiveHour: 15, sevenDay: 20, allowOverage: false };

it("reserve, behavior at a limit, longest wait and budget are read from a file, variables and flags", () => {
  const expected = { planReserve: reserve, onLimit: "wait", limitWaitMaxMs: 600_000, budgetUsdPerDay: 12.5 };
  const text = JSON.stringify(reserve);
  const env = {
    CLAUDE_CODE_MCP_PLAN_RESERVE: text,
    CLAUDE_CODE_MCP_ON_LIMIT: "wait",
    CLAUDE_CODE_MCP_LIMIT_WAIT_MAX_MS: "600000",
    CLAUDE_CODE_MCP_BUDGET_USD_PER_DAY: "12.5",
  };
  const argv = ["--plan-reserve", text, "--on-limit=wait", "--limit-wait-max-ms=600000", "--budget-usd-per-day=12.5"];
  expect(load(expected)).toMatchObject(expected);
  expect(loadConfig({ argv: [], env })).toMatchObject(expected);
  expect(loadConfig({ argv, env: {} })).toMatchObject(expected);
});

describe("invalid values for plans and money", () => {
  const percentage = "must be a percentage from 0 to 100, such as 15.";
  const usd = "must be an amount of USD per day above 0 and up to 1000000, such as 12.5.";
  const shape = "must be an object with no other keys than fiveHour, sevenDay and allowOverage";
  const ada = (budgetUsdPerDay: unknown) => ({ principals: { ada: { allowDirs: "any", budgetUsdPerDay } } });

  it.each([
    [
      "a percentage above 100",
      { planReserve: { fiveHour: 101 } },
      `"planReserve" in ${FILE} cannot be used, at fiveHour: ${percentage}`,
    ],
    ["a percentage below 0", { planReserve: { sevenDay: -1 } }, `at sevenDay: ${percentage}`],
    ["a percentage as text", { planReserve: { sevenDay: "20" } }, `at sevenDay: ${percentage}`],
    ["an unknown window", { planReserve: { fivehour: 15 } }, `"planReserve" in ${FILE} cannot be used: ${shape}`],
    ["a reserve that is no object", { planReserve: 15 }, `"planReserve" in ${FILE} cannot be used: ${shape}`],
    ["a word for allowOverage", { planReserve: { allowOverage: "yes" } }, "at allowOverage: must be true or false."],
    ["an unknown behavior", { onLimit: "stop" }, `"onLimit" in ${FILE} is "stop": must be one of report, wait.`],
    ["a wait of 0", { limitWaitMaxMs: 0 }, "must be a whole number of ms from 1000 to 2147483647."],
    ["a budget of 0", { budgetUsdPerDay: 0 }, `"budgetUsdPerDay" in ${FILE} is 0: ${usd}`],
    ["a negative budget", { budgetUsdPerDay: -5 }, `"budgetUsdPerDay" in ${FILE} is -5: ${usd}`],
    ["a budget as text", { budgetUsdPerDay: "5" }, `"budgetUsdPerDay" in ${FILE} is "5": ${usd}`],
    ["a budget of 0 for a principal", ada(0), `"principals" in ${FILE} cannot be used, at ada.budgetUsdPerDay: ${usd}`],
    ["no budget for a principal", ada(null), `at ada.budgetUsdPerDay: ${usd}`],
  ])("%s is refused", (_, settings, message) => {
    expect(() => load(settings)).toThrow(message);
  });

  it("a client of a daemon that gives limits on plans or money is refused", () => {
    const argv = ["--budget-usd-per-day", "5", "--on-limit", "wait"];
    const refused = () => refuseServerSettings({ argv, env: {} }, "/config.json");
    expect(refused).toThrow("--on-limit, --budget-usd-per-day belong to the server, which has other clients, too.");
  });
});

const sessionOf = (principal: string, profile = {}) => ({ principal, spec: { cwd: "/work", ...profile } });

describe("the limits of a session", () => {
  it("a session without settings has no reserve and no budget, and reports limits", () => {
    expect(useOf(load({}), sessionOf("local"))).toEqual(UNLIMITED_USE);
  });

  it("the budget of a principal replaces the budget of the server", () => {
    const config = load({
      planReserve: reserve,
      onLimit: "wait",
      limitWaitMaxMs: 600_000,
      budgetUsdPerDay: 20,
      principals: { ada: { budgetUsdPerDay: 2.5 }, bob: {} },
    });
    const use = { onLimit: "wait", waitMaxMs: 600_000, marginMs: 15_000, reserve };
    const budget = (name: string, usdPerDay: number) => ({
      ...use,
      budgets: [{ scope: "principal", name, usdPerDay }],
    });
    expect(useOf(config, sessionOf("ada"))).toEqual(budget("ada", 2.5));
    expect(useOf(config, sessionOf("bob"))).toEqual(budget("bob", 20));
    expect(useOf(config, sessionOf("local"))).toEqual(budget("local", 20));
    expect(useOf(config, sessionOf("constructor"))).toEqual(budget("constructor", 20));
  });

  it("a budget of one principal bounds no other", () => {
    const config = load({ principals: { ada: { budgetUsdPerDay: 2.5 }, bob: {} } });
    expect(useOf(config, sessionOf("bob")).budgets).toEqual([]);
    expect(useOf(config, sessionOf("local")).budgets).toEqual([]);
  });

  it("a profile replaces the reserve of the server, and its budget counts beside the budget of the principal", () => {
    const night = { planReserve: { sevenDay: 50 }, budgetUsdPerDay: 8 };
    const principals = { ada: { profiles: ["night"] }, bob: {} };
    const config = load({ planReserve: reserve, budgetUsdPerDay: 20, profiles: { night, plain: {} }, principals });
    const used = (principal: string, profile: string) => useOf(config, sessionOf(principal, { profile }));
    const ofAda = { scope: "principal", name: "ada", usdPerDay: 20 };
    expect(used("ada", "night")).toMatchObject({
      reserve: { sevenDay: 50 },
      budgets: [ofAda, { scope: "profile", name: "night", usdPerDay: 8 }],
    });
    expect(used("local", "plain")).toMatchObject({ reserve, budgets: [{ ...ofAda, name: "local" }] });
    // A session of bob cannot have it; one of another server's store does not count for it.
    expect(used("bob", "night")).toMatchObject({ reserve, budgets: [{ ...ofAda, name: "bob" }] });
  });
});
