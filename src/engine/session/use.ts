import type { Budget, BudgetDay } from "../../domain/budget.ts";
import { accountKey, budgetKey, dayIn, localDay, windowsIn } from "../../domain/ledger.ts";
import { optionsOf } from "../../domain/session.ts";
import { roundUsd } from "../../domain/usage.ts";
import type { BudgetUse, SessionUse } from "../api.ts";
import type { ServerTerms } from "../policy/operator.ts";
import { UNLIMITED_USE } from "../policy/policy.ts";
import type { AgentRuntime, Clock, SessionBackend, SessionRecord } from "../ports.ts";
import { findEnvironment } from "./environment.ts";

/** Reads the use of a session's account and budgets from the ledger. */

interface Dependencies extends ServerTerms {
  readonly backend: Pick<SessionBackend, "ledger">;
  readonly clock: Pick<Clock, "now">;
  readonly runtime: Pick<AgentRuntime, "environments">;
}

export async function readUse(
  { backend: { ledger }, clock, runtime: { environments }, useOf }: Dependencies,
  record: SessionRecord,
): Promise<SessionUse> {
  const { principal, spec, state } = record;
  const { budgets, reserve } = useOf?.(record) ?? UNLIMITED_USE;
  const environmentId = findEnvironment(environments, record);
  const options = optionsOf(spec, state);
  const account =
    environmentId === undefined ? undefined : await environments.accountOf(environmentId, principal, options);
  const day = localDay(clock.now());
  const keys = budgets.map((budget) => budgetKey(budget, day));
  const entries = await ledger.read([...keys, ...(account ? [accountKey(account.id)] : [])]);
  const windows = account && windowsIn(entries.find(({ key }) => key === accountKey(account.id))?.value);
  return {
    account: account && { ...account, windows: windows?.windows ?? {} },
    reserve,
    budgets: budgets.map((budget) =>
      budgetUse(budget, dayIn(entries.find(({ key }) => key === budgetKey(budget, day))?.value)),
    ),
  };
}

/** Adds the spending of a day to a budget, whose bound need not be known. */
export function budgetUse<B extends Pick<Budget, "name" | "scope">>(
  budget: B,
  { reserved, spentUsd, unknownUsd }: BudgetDay,
): B & Omit<BudgetUse, keyof Budget> {
  const reservedUsd = roundUsd(Object.values(reserved).reduce((sum, usd) => sum + usd, 0));
  return { ...budget, spentUsd, reservedUsd, unknownUsd };
}
