import { BudgetDay, EMPTY_DAY, type Budget } from "./budget.ts";
import type { JsonObject } from "./json.ts";
import { AccountWindows } from "./plan.ts";

/** Keys of the ledger: small values that all servers of a store share (`SessionBackend.ledger`). */

/** Prefixes of the keys, by content. */
export const LEDGER_PREFIXES = { account: "plan:", budget: "budget:" } as const;

/** Key of the windows of an account (`AccountWindows`). */
export function accountKey(accountId: string): string {
  return `${LEDGER_PREFIXES.account}${accountId}`;
}

/** Key of a budget's spending on a day (`BudgetDay`). `day`: local date such as `2026-11-28`. */
export function budgetKey({ name, scope }: Pick<Budget, "name" | "scope">, day: string): string {
  return `${LEDGER_PREFIXES.budget}${day}:${scope}:${name}`;
}

/** Returns the parts of a key made by `budgetKey`. */
export function budgetOfKey(key: string): (Pick<Budget, "name" | "scope"> & { readonly day: string }) | undefined {
  const [, day, scope, name] = /^budget:([^:]*):(principal|profile):([^]*)$/.exec(key) ?? [];
  if (day === undefined || name === undefined || (scope !== "principal" && scope !== "profile")) return undefined;
  return { day, scope, name };
}

/** Returns the date of `at` in the server's time zone, such as `2026-11-28`. */
export function localDay(at: number): string {
  const date = new Date(at);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${String(date.getFullYear())}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Returns the end of the server's local day that `at` is in, ms since the epoch. */
export function endOfDay(at: number): number {
  const date = new Date(at);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + 1).getTime();
}

/** Returns the windows in a value; `undefined` if the value is missing or damaged. */
export function windowsIn(value: JsonObject | undefined): AccountWindows | undefined {
  return AccountWindows.safeParse(value).data;
}

/** Returns the spending in a value. Treats a missing or damaged value as a day without spending. */
export function dayIn(value: JsonObject | undefined): BudgetDay {
  return BudgetDay.safeParse(value).data ?? EMPTY_DAY;
}
