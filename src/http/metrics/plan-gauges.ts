import type { Budget } from "../../domain/budget.ts";
import { budgetOfKey, dayIn, LEDGER_PREFIXES, localDay, windowsIn } from "../../domain/ledger.ts";
import { usedPercent } from "../../domain/plan.ts";
import { roundUsd } from "../../domain/usage.ts";
import type { BudgetUse } from "../../engine/api.ts";
import type { Ledger, LedgerEntry } from "../../engine/ports.ts";
import { budgetUse } from "../../engine/session/use.ts";
import { accountLabel } from "../../security/account-label.ts";

/** Windows of plans and budgets of the present day, read from the ledger at each scrape. */

/** Maximum number of accounts. Those reported least recently are left out. */
const MAX_ACCOUNTS = 20;
/** Names of windows that become labels: words of the API, which are few. */
const WINDOW = /^[a-z0-9_]{1,40}$/;
/** Label of all budgets without a name in the settings, because users of an authorization server are unbounded. */
const OTHERS = "(others)";

interface WindowUse {
  readonly labels: Readonly<Record<"account" | "window", string>>;
  /** Used share, 0 to 1; `undefined` if only the reset is known. */
  readonly usedRatio: number | undefined;
  readonly resetsAtS: number | undefined;
  readonly reportedAtS: number;
}

export async function readWindows(ledger: Pick<Ledger, "list">, now: number): Promise<WindowUse[]> {
  const entries = await ledger.list(LEDGER_PREFIXES.account);
  const newest = entries.toSorted((one, other) => other.at - one.at).slice(0, MAX_ACCOUNTS);
  return newest.flatMap((entry) => windowsOf(entry, now));
}

function windowsOf({ key, value }: LedgerEntry, now: number): WindowUse[] {
  const account = accountLabel(key.slice(LEDGER_PREFIXES.account.length));
  const known = windowsIn(value) ?? { windows: {} };
  const named = Object.entries(known.windows).filter(([window]) => WINDOW.test(window));
  return named.map(([window, { at, isRejected, resetsAt, usedPercent: percent }]) => {
    const hasShare = percent !== undefined || isRejected === true;
    return {
      labels: { account, window },
      usedRatio: hasShare ? usedPercent(known, window, now) / 100 : undefined,
      resetsAtS: resetsAt === undefined ? undefined : resetsAt / 1000,
      reportedAtS: at / 1000,
    };
  });
}

interface BudgetSpending extends Pick<BudgetUse, "reservedUsd" | "spentUsd" | "unknownUsd"> {
  readonly labels: Readonly<Record<"name" | "scope", string>>;
  /** `undefined` for the sum of others. */
  readonly limitUsd: number | undefined;
}

type Named = Pick<Budget, "name" | "scope">;

/** Reads the spending of `budgets` today, and the sum of all others by scope. */
export async function readBudgets(
  ledger: Pick<Ledger, "list">,
  budgets: readonly Budget[],
  now: number,
): Promise<BudgetSpending[]> {
  const entries = await ledger.list(`${LEDGER_PREFIXES.budget}${localDay(now)}:`);
  const uses = entries.flatMap(({ key, value }) => {
    const budget = budgetOfKey(key);
    return budget ? [budgetUse({ ...budget, usdPerDay: 0 }, dayIn(value))] : [];
  });
  const isOf = (one: Named) => (other: Named) => one.scope === other.scope && one.name === other.name;
  const named = budgets.map((budget) => sumOf(budget, uses.filter(isOf(budget)), budget.usdPerDay));
  const unnamed = uses.filter((use) => !budgets.some(isOf(use)));
  const scopes = new Set(unnamed.map(({ scope }) => scope));
  const others = [...scopes].map((scope) =>
    sumOf(
      { scope, name: OTHERS },
      unnamed.filter((use) => use.scope === scope),
    ),
  );
  return [...named, ...others];
}

function sumOf({ name, scope }: Named, uses: readonly BudgetUse[], limitUsd?: number): BudgetSpending {
  const sum = (field: "reservedUsd" | "spentUsd" | "unknownUsd") =>
    roundUsd(uses.reduce((total, use) => total + use[field], 0));
  const sums = { spentUsd: sum("spentUsd"), unknownUsd: sum("unknownUsd"), reservedUsd: sum("reservedUsd") };
  return { labels: { scope, name }, ...sums, limitUsd };
}
