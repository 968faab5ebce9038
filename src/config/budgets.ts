import type { Config } from "./schema.ts";
import type { Budget } from "../domain/budget.ts";
import { LOCAL_PRINCIPAL } from "../domain/principal.ts";
import { findProfile } from "../domain/profile.ts";

/** Budgets that the settings give: of users, and of profiles. */

type Settings = Pick<Config, "budgetUsdPerDay" | "principals" | "profiles">;
type Named = Pick<Budget, "name" | "scope">;

/** Returns the budget of a principal or of a profile; `undefined` if it has none. */
export function findBudget(settings: Settings, { name, scope }: Named): Budget | undefined {
  const usdPerDay =
    scope === "principal" ? usdOf(settings, name) : findProfile(settings.profiles, name)?.budgetUsdPerDay;
  return usdPerDay === undefined ? undefined : { scope, name, usdPerDay };
}

function usdOf({ budgetUsdPerDay, principals }: Settings, principal: string): number | undefined {
  const own = Object.hasOwn(principals, principal) ? principals[principal] : undefined;
  return own?.budgetUsdPerDay ?? budgetUsdPerDay;
}

/** Returns the budgets with names from the settings. Other users of an authorization server may have budgets too. */
export function namedBudgets(settings: Settings): Budget[] {
  const users = new Set([LOCAL_PRINCIPAL, ...Object.keys(settings.principals)]);
  const all: Named[] = [
    ...[...users].map((name) => ({ scope: "principal" as const, name })),
    ...Object.keys(settings.profiles).map((name) => ({ scope: "profile" as const, name })),
  ];
  return all.flatMap((each) => findBudget(settings, each) ?? []);
}
