import { expect, it } from "vitest";
import type { JsonObject } from "../../src/domain/json.ts";
import { accountKey, budgetKey, localDay } from "../../src/domain/ledger.ts";
import { createMetrics } from "../../src/http/metrics/metrics.ts";
import { accountLabel } from "../../src/security/account-label.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { T0 } from "../kit/store/vocabulary.ts";

/** Gauges of plan windows and budgets. */

it("gauges report windows of accounts and budgets of today, and name no account and no unknown user", async () => {
  const store = memoryStore({ tick: () => T0 }).connect("a");
  const put = async (key: string, value: JsonObject) => store.ledger.update(key, () => value);
  const about = { paidBy: "SECRET", configFolder: "/SECRET" };
  const window = { source: "headers", at: T0 - 5000 } as const;
  const windows = {
    five_hour: { ...window, usedPercent: 42, resetsAt: T0 + 1000 },
    seven_day: { ...window, usedPercent: 90, resetsAt: T0 - 1 },
    seven_day_opus: { source: "rejection", at: T0, isRejected: true },
    seven_day_sonnet: { ...window, resetsAt: T0 + 2000 },
    "SECRET words": { ...window, usedPercent: 1 },
  };
  await put(accountKey("SECRET"), { ...about, windows });
  for (let count = 0; count < 25; count += 1)
    await put(accountKey(`account:${String(count)}`), {
      ...about,
      windows: { five_hour: { ...window, usedPercent: 1 } },
    });
  const day = { spentUsd: 1.5, unknownUsd: 0.5, reserved: { t1: 0.25, t2: 0.5 } };
  const budgets = [
    { scope: "principal", name: "ann", usdPerDay: 10 },
    { scope: "profile", name: "work", usdPerDay: 5 },
  ] as const;
  for (const name of ["ann", "SECRET-1", "SECRET-2"])
    await put(budgetKey({ scope: "principal", name }, localDay(T0)), day);
  await put(budgetKey({ scope: "profile", name: "work" }, "2026-01-01"), day);
  const metrics = createMetrics({
    version: "1",
    gaugeSources: () => ({ store, spares: { available: 0 }, budgets, now: () => T0 }),
    log: { warn: (message) => expect.fail(message) },
  });
  const text = await metrics.text();
  expect(text).not.toContain("SECRET");
  const account = accountLabel("SECRET");
  const samples = text.split("\n").flatMap((line) => {
    const [, name, value] = /^claude_code_mcp_(.*) (\S+)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, Number(value)] as const];
  });
  const of = (name: string) => samples.filter(([key]) => key.startsWith(name));
  const values = Object.fromEntries(of("plan_").filter(([key]) => key.includes(account)));
  expect(values).toEqual({
    [`plan_used_ratio{account="${account}",window="five_hour"}`]: 0.42,
    [`plan_used_ratio{account="${account}",window="seven_day"}`]: 0,
    [`plan_used_ratio{account="${account}",window="seven_day_opus"}`]: 1,
    [`plan_reset_timestamp_seconds{account="${account}",window="five_hour"}`]: T0 / 1000 + 1,
    [`plan_reset_timestamp_seconds{account="${account}",window="seven_day"}`]: (T0 - 1) / 1000,
    [`plan_reset_timestamp_seconds{account="${account}",window="seven_day_sonnet"}`]: T0 / 1000 + 2,
    [`plan_reported_timestamp_seconds{account="${account}",window="five_hour"}`]: T0 / 1000 - 5,
    [`plan_reported_timestamp_seconds{account="${account}",window="seven_day"}`]: T0 / 1000 - 5,
    [`plan_reported_timestamp_seconds{account="${account}",window="seven_day_opus"}`]: T0 / 1000,
    [`plan_reported_timestamp_seconds{account="${account}",window="seven_day_sonnet"}`]: T0 / 1000 - 5,
  });
  expect(new Set(of("plan_used").map(([key]) => key.slice(0, 40))).size).toBe(20);
  expect(Object.fromEntries(of("budget_"))).toEqual({
    'budget_spent_usd{scope="principal",name="ann"}': 1.5,
    'budget_spent_usd{scope="profile",name="work"}': 0,
    'budget_spent_usd{scope="principal",name="(others)"}': 3,
    'budget_unknown_price_usd{scope="principal",name="ann"}': 0.5,
    'budget_unknown_price_usd{scope="profile",name="work"}': 0,
    'budget_unknown_price_usd{scope="principal",name="(others)"}': 1,
    'budget_reserved_usd{scope="principal",name="ann"}': 0.75,
    'budget_reserved_usd{scope="profile",name="work"}': 0,
    'budget_reserved_usd{scope="principal",name="(others)"}': 1.5,
    'budget_limit_usd{scope="principal",name="ann"}': 10,
    'budget_limit_usd{scope="profile",name="work"}': 5,
  });
});
