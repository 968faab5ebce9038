import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkPlan } from "../../src/doctor/plan.ts";
import type { StoreReport } from "../../src/doctor/store-report.ts";
import { accountLabel } from "../../src/security/account-label.ts";
import { useMachine } from "../kit/install/doctor-machine.ts";

/** `doctor` lists plan windows and budgets from the store. */

const machine = useMachine();
const MINUTE = 60_000;

type Opened = Extract<StoreReport, { kind: "opened" }>;

async function planFindings(found: Partial<Opened>, argv: string[] = []): Promise<string[]> {
  const store = join(machine.stateFolder, "store.db");
  writeFileSync(store, "");
  const report: StoreReport = {
    kind: "opened",
    schema: 1,
    sqlite: "3",
    sessions: 0,
    isChecked: true,
    unreadable: [],
    lossy: [],
    accounts: [],
    budgets: [],
    ...found,
  };
  const findings = await checkPlan(machine.toMachine({ store, readStore: async () => Promise.resolve(report) }, argv));
  expect(new Set(findings.map(({ id }) => id))).toEqual(new Set(["plan"]));
  return findings.map(({ level, text }) => `${level}: ${text}`);
}

it("an account is listed with the use, the reset and the age of each window, and a reserve is suggested", async () => {
  const now = Date.now();
  const at = now - 5 * MINUTE;
  const resetsAt = now + 90 * MINUTE;
  const windows = {
    five_hour: { source: "headers", at, usedPercent: 41.6, resetsAt },
    seven_day: { source: "headers", at: now - 72 * 60 * MINUTE, usedPercent: 99, resetsAt: now - 1 },
    seven_day_opus: { source: "rejection", at: now - 180 * MINUTE, isRejected: true, resetsAt },
    other: { source: "headers", at: now - 100 * 60 * MINUTE },
  } as const;
  const accounts = [{ id: "account:u", paidBy: "its login", configFolder: "/home/ann/.claude", windows }];
  const reset = new Date(resetsAt).toISOString();
  const account = `account ${accountLabel("account:u")} (paid by its login, configuration in /home/ann/.claude)`;
  const [listed, suggested, ...others] = await planFindings({ accounts });
  expect(listed).toBe(
    [
      `ok: Plan of ${account}: 5-hour window 42 % used, resets at ${reset} (reported 5 minutes ago)`,
      "weekly window 0 % used (reset since)",
      `weekly Opus window 100 % used, resets at ${reset} (reported 3 hours ago)`,
      "window other use unknown (reported 4 days ago).",
    ].join("; "),
  );
  expect([suggested, others]).toEqual([expect.stringContaining('"planReserve": {"fiveHour": 15'), []]);
  expect(await planFindings({ accounts }, ["--plan-reserve", '{"fiveHour":10}'])).toEqual([listed]);
});

it("an API key has no windows, and says so; a login has none before its first answer", async () => {
  expect(await planFindings({})).toEqual([expect.stringContaining("ok: No plan windows are known")]);
  machine.environment["ANTHROPIC_API_KEY"] = "sk-secret";
  const [found] = await planFindings({});
  expect(found).toBe("ok: Sessions of this environment are paid by ANTHROPIC_API_KEY, which has no plan windows.");
});

it("a budget of which 80 % are spent today is a warning", async () => {
  const budgets = [
    { scope: "principal", name: "local", spentUsd: 8 },
    { scope: "principal", name: "of the authorization server", spentUsd: 7.99 },
    { scope: "profile", name: "gone", spentUsd: 99 },
    { scope: "profile", name: "work", spentUsd: 6 },
  ] as const;
  const profiles = ["--profiles", '{"work":{"budgetUsdPerDay":5}}'];
  const [, ...warnings] = await planFindings({ budgets: [...budgets] }, ["--budget-usd-per-day", "10", ...profiles]);
  const amounts = "(8.00 of 10.00 USD, by Claude Code's estimates)";
  expect(warnings).toEqual([
    expect.stringMatching(/^warning: 80 % of today's budget of the principal local are spent/),
    expect.stringMatching(/^warning: 120 % of today's budget of the profile work are spent/),
  ]);
  expect(warnings[0]).toContain(amounts);
  expect(await planFindings({ budgets: [...budgets] })).toHaveLength(1);
});
