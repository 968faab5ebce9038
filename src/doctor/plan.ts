import { accountLabel } from "../security/account-label.ts";
import { readAccount } from "../claude/account.ts";
import { childEnvironment } from "../claude/child-environment.ts";
import { findBudget } from "../config/budgets.ts";
import { usedPercent, windowName, type AccountWindows } from "../domain/plan.ts";
import { counted, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";
import { readOpened } from "./store.ts";
import type { StoreReport } from "./store-report.ts";

/** Shows plan windows of accounts, and warns of budgets that are nearly spent. */

type Opened = Extract<StoreReport, { kind: "opened" }>;

/** Share of a budget above which it is reported, as for the notice in the log of a session. */
const NEARLY = 0.8;

export async function checkPlan(machine: Machine): Promise<Finding[]> {
  const { accounts = [], budgets = [] } = (await readOpened(machine)) ?? {};
  const own = await readAccount(childEnvironment(machine.environment, { depth: 0 }));
  const known = accounts.map((account) => ok(accountText(account, Date.now())));
  const none = own.hasWindows
    ? ok("No plan windows are known: an account with a subscription reports them with its next answer.")
    : ok(`Sessions of this environment are paid by ${own.paidBy}, which has no plan windows.`);
  const found = known.length === 0 || !own.hasWindows ? [...known, none] : known;
  const isReserved = machine.config.planReserve !== undefined || accounts.length === 0;
  return [...found, ...(isReserved ? [] : [ok(SUGGESTION)]), ...budgets.flatMap((each) => nearlySpent(machine, each))];
}

const SUGGESTION =
  'Nothing of the plan is kept for you: agents may use up its windows. To keep a part, set "planReserve": {"fiveHour": 15, "sevenDay": 20} in the user\'s file of settings.';

function accountText({ configFolder, id, paidBy, windows }: Opened["accounts"][number], now: number): string {
  const whose = `Plan of account ${accountLabel(id)} (paid by ${paidBy}, configuration in ${configFolder})`;
  const each = Object.keys(windows).map((name) => windowText({ windows }, name, now));
  return `${whose}: ${each.join("; ")}.`;
}

function windowText(known: Pick<AccountWindows, "windows">, name: string, now: number): string {
  const { at = now, isRejected, resetsAt, usedPercent: share } = known.windows[name] ?? {};
  const isOver = resetsAt !== undefined && resetsAt <= now;
  const isUnknown = share === undefined && isRejected !== true && !isOver;
  const used = isUnknown ? "use unknown" : `${String(Math.round(usedPercent(known, name, now)))} % used`;
  const reset = resetsAt === undefined || isOver ? "" : `, resets at ${new Date(resetsAt).toISOString()}`;
  return `${windowName(name)} ${used}${reset} (${isOver ? "reset since" : agoText(now - at)})`;
}

function agoText(ms: number): string {
  const minutes = Math.max(Math.round(ms / 60_000), 0);
  if (minutes < 120) return `reported ${counted(minutes, "minute")} ago`;
  const hours = Math.round(minutes / 60);
  return `reported ${hours < 48 ? counted(hours, "hour") : counted(Math.round(hours / 24), "day")} ago`;
}

function nearlySpent({ config }: Machine, { name, scope, spentUsd }: Opened["budgets"][number]): Finding[] {
  const { usdPerDay } = findBudget(config, { name, scope }) ?? {};
  if (usdPerDay === undefined || spentUsd < usdPerDay * NEARLY) return [];
  const amounts = `${spentUsd.toFixed(2)} of ${usdPerDay.toFixed(2)} USD, by Claude Code's estimates`;
  const text = `${String(Math.floor((spentUsd / usdPerDay) * 100))} % of today's budget of the ${scope} ${name} are spent (${amounts}). At 100 % its turns do not start until midnight.`;
  return [{ id: "plan", level: "warning", text }];
}

function ok(text: string): Finding {
  return { id: "plan", level: "ok", text };
}
