import { type Budget, type BudgetDay, leftUsd, type Reservation } from "../../domain/budget.ts";
import type { Refusal } from "../../domain/error.ts";
import { accountKey, budgetKey, dayIn, windowsIn } from "../../domain/ledger.ts";
import { knownUntil, usedPercent, windowName, type AccountWindows } from "../../domain/plan.ts";
import type { Turn } from "../../domain/running-turn.ts";
import { roundUsd } from "../../domain/usage.ts";
import type { Policy } from "../policy/policy.ts";
import { emit, type Draft } from "./draft.ts";
import type { LedgerDraft } from "./ledger-draft.ts";

/** Decides by the ledger and the node: may a turn start, must it stop, and how much may it spend. */

/** Limit of the operator that holds a turn back. `until`: end of the window or of the day, ms since the epoch. */
interface OperatorLimit {
  readonly kind: "plan_reserve" | "budget";
  readonly window?: string;
  readonly until: number;
}

/** Reason why a turn is held back. `away`: the session may not run on this node. */
export type HeldBack = OperatorLimit | { readonly kind: "workspace"; readonly away: string };

interface Place {
  readonly at: number;
  readonly ledger: Pick<LedgerDraft, "glance" | "known" | "read">;
  readonly policy: Pick<Policy, "use">;
}

/** Time until the next look at a window without a reset to come, or at a budget that running turns have reserved, ms. */
const LOOK_MS = 60_000;

/** Returns the limit that keeps a new turn from starting, if any. */
export function startLimit(place: Place): HeldBack | undefined {
  const { away } = place.ledger.known;
  return away === undefined ? (reserveLimit(place) ?? budgetLimit(place)) : { kind: "workspace", away };
}

/** Returns the window whose rest is reserved, so that no new turn starts. */
export function reserveLimit(place: Place): OperatorLimit | undefined {
  const { fiveHour, sevenDay } = place.policy.use.reserve ?? {};
  const { accountId } = place.ledger.known;
  if (accountId === undefined || (fiveHour === undefined && sevenDay === undefined)) return undefined;
  const windows = windowsIn(place.ledger.read(accountKey(accountId)));
  if (!windows) return undefined;
  return overLine(place, windows, "seven_day", sevenDay) ?? overLine(place, windows, "five_hour", fiveHour);
}

function overLine(
  { at }: Pick<Place, "at">,
  account: AccountWindows,
  window: string,
  kept: number | undefined,
): OperatorLimit | undefined {
  if (kept === undefined || usedPercent(account, window, at) < 100 - kept) return undefined;
  const found = account.windows[window];
  const until = found ? knownUntil(found, window) : 0;
  // All of the window may be kept, so that a reset in the past frees nothing.
  return { kind: "plan_reserve", window, until: until > at ? until : at + LOOK_MS };
}

/**
 * Returns the weekly window if the rest of it is reserved, so that a running turn stops. Relies on the entry, because a tool call
 * that is stored after the report must be the turn's last.
 */
export function weeklyLimit({ at, ledger, policy }: Place): OperatorLimit | undefined {
  const { sevenDay } = policy.use.reserve ?? {};
  const { accountId } = ledger.known;
  if (accountId === undefined || sevenDay === undefined) return undefined;
  const windows = windowsIn(ledger.read(accountKey(accountId)));
  return windows && overLine({ at }, windows, "seven_day", sevenDay);
}

function budgetLimit({ at, ledger, policy }: Place): OperatorLimit | undefined {
  const { day, dayEndsAt } = ledger.known;
  const ends = policy.use.budgets.flatMap((each) => {
    const today = dayIn(ledger.read(budgetKey(each, day)));
    if (leftUsd(today, each.usdPerDay) > 0) return [];
    // Running turns give back what they do not spend.
    return today.spentUsd < each.usdPerDay ? at + LOOK_MS : dayEndsAt;
  });
  return ends.length === 0 ? undefined : { kind: "budget", until: Math.max(...ends) };
}

/** Returns a sentence on a limit for the caller. */
export function limitText(limit: HeldBack): string {
  if (limit.kind === "workspace") return limit.away;
  const { kind, until, window = "" } = limit;
  const when = new Date(until).toISOString();
  if (kind === "budget")
    return `The day's budget (budgetUsdPerDay) is spent, or reserved by running turns, at least until ${when}.`;
  return `The operator keeps the rest of the ${windowName(window)} (planReserve), which resets at ${when}.`;
}

/** Returns the refusal of a prompt that a limit keeps from starting. */
export function limitRefusal(limit: HeldBack): Refusal {
  return { code: "SESSION_BUSY", message: `${limitText(limit)} Try again after that.` };
}

/** Parts of a day's budget that a turn reserves at most. */
const PARTS = 8;

/** Reserves the turn's part of each budget: the smaller of its own limit and an eighth, or else the rest. */
export function reserveBudgets({ ledger, policy }: Draft, turn: Turn): void {
  const { budgets } = policy.use;
  if (budgets.length === 0) return;
  const { budgetUsd = Number.POSITIVE_INFINITY } = policy;
  turn.reserved = budgets.map((budget): Reservation => {
    const key = budgetKey(budget, ledger.known.day);
    const day = dayIn(ledger.read(key));
    const left = Math.max(0, leftUsd(day, budget.usdPerDay));
    const usd = roundUsd(Math.min(budgetUsd, budget.usdPerDay / PARTS, left));
    ledger.write(key, { ...day, reserved: { ...day.reserved, [turn.id]: usd } });
    return { key, usd };
  });
}

/** Returns the amount that a turn may spend, USD; `undefined` means no bound. */
export function budgetOf({ budgetUsd }: Pick<Policy, "budgetUsd">, { reserved = [] }: Turn): number | undefined {
  const bounds = [...(budgetUsd === undefined ? [] : [budgetUsd]), ...reserved.map(({ usd }) => usd)];
  return bounds.length === 0 ? undefined : Math.min(...bounds);
}

/** Share of a budget from which a notice warns. */
const NOTICE_SHARE = 0.8;

/** Charges cost that no budget has counted yet, and gives the turn's reservation back. */
export function settleBudgets(draft: Draft, turn: Turn | undefined): void {
  const { ledger, policy, state } = draft;
  // A session of an earlier version has spent before there were budgets.
  const { chargedUsd = state.totals.costUsd - (turn?.costUsd ?? 0) } = state;
  const costUsd = roundUsd(state.totals.costUsd - chargedUsd);
  const isCharged = costUsd > 0;
  if (!isCharged && !turn?.reserved) return;
  state.chargedUsd = state.totals.costUsd;
  const keys =
    turn?.reserved?.map(({ key }) => key) ?? policy.use.budgets.map((each) => budgetKey(each, ledger.known.day));
  for (const key of keys) {
    const before = dayIn(ledger.read(key));
    const { [turn?.id ?? ""]: _, ...reserved } = before.reserved;
    const unknownUsd = roundUsd(before.unknownUsd + (turn?.hasUnknownPrice ? costUsd : 0));
    const after = { ...before, spentUsd: roundUsd(before.spentUsd + costUsd), unknownUsd, reserved };
    const budget = policy.use.budgets.find((each) => budgetKey(each, ledger.known.day) === key);
    ledger.write(key, noticed(draft, after, budget));
  }
}

/** Warns once a day and budget. */
function noticed(draft: Draft, day: BudgetDay, budget: Budget | undefined): BudgetDay {
  if (!budget || day.isNoticed || day.spentUsd < NOTICE_SHARE * budget.usdPerDay) return day;
  const whose = budget.scope === "profile" ? `profile ${budget.name}` : budget.name;
  const spent = `$${day.spentUsd.toFixed(2)} of $${String(budget.usdPerDay)}`;
  const message = `The day's budget of ${whose} is nearly spent: ${spent}, as Claude Code estimates.`;
  emit(draft, { type: "notice", data: { kind: "warning", message } });
  return { ...day, isNoticed: true };
}
