import type { JsonObject } from "../../../domain/json.ts";
import { leftUsd } from "../../../domain/budget.ts";
import { usedPercent, type PlanReserve } from "../../../domain/plan.ts";
import { limitFields } from "../../../domain/standstill.ts";
import type { BudgetUse, SessionUse } from "../../../engine/api.ts";

/** Presents the plan windows of a session's account, and the budgets of the session. */

interface Presentation {
  readonly now: number;
  /** True for a caller who may see folders. */
  readonly showsFolder: boolean;
}

export function presentUse({ account, budgets, reserve }: SessionUse, presentation: Presentation): JsonObject {
  return {
    plan: account ? presentPlan(account, presentation) : { note: NO_ACCOUNT },
    ...(reserve && { reserve: { ...reserve, lines: linesOf(reserve) } }),
    ...(budgets.length > 0 && { budgets: budgets.map(presentBudget) }),
  };
}

const NO_ACCOUNT =
  "The account is unknown: no client of the session is connected to this server. Reply to the session, then ask again.";
const NO_WINDOWS = "This account has no plan windows: each request is billed.";
const NO_REPORT = "The API has not reported any window yet. An unknown window counts as free.";

type KnownAccount = NonNullable<SessionUse["account"]>;

function presentPlan(
  { configFolder, hasWindows, paidBy, windows }: KnownAccount,
  { now, showsFolder }: Presentation,
): JsonObject {
  const payer = { paidBy, ...(showsFolder && { configFolder }) };
  if (!hasWindows) return { ...payer, note: NO_WINDOWS };
  const known = Object.entries(windows).map(([window, { at, isRejected, resetsAt, source }]) => {
    const isOver = resetsAt !== undefined && resetsAt <= now;
    return {
      ...limitFields({ window, ...(resetsAt !== undefined && { resetsAt }) }),
      usedPercent: Math.round(usedPercent({ windows }, window, now) * 10) / 10,
      ...(isOver && { note: "The reset has passed, so the window counts as free." }),
      ...(isRejected && !isOver && { refused: true }),
      ageS: Math.max(0, Math.round((now - at) / 1000)),
      source,
    };
  });
  return known.length === 0 ? { ...payer, note: NO_REPORT } : { ...payer, windows: known };
}

/** Returns the used shares from which the reserve begins, percent, by window. */
function linesOf({ fiveHour, sevenDay }: PlanReserve): JsonObject {
  return {
    ...(fiveHour !== undefined && { five_hour: 100 - fiveHour }),
    ...(sevenDay !== undefined && { seven_day: 100 - sevenDay }),
  };
}

function presentBudget(use: BudgetUse): JsonObject {
  const { name, reservedUsd, scope, spentUsd, unknownUsd, usdPerDay } = use;
  const left = leftUsd({ spentUsd, unknownUsd, reserved: { all: reservedUsd } }, usdPerDay);
  return { scope, name, usdPerDay, spentUsd, reservedUsd, leftUsd: left, unknownUsd, estimated: true };
}
