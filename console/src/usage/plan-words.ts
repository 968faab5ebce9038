import type { AccountUse, BudgetUse } from "../../../src/console/wire-usage.ts";
import { ago, duration, shortTime, usd } from "../parts/format.ts";
import { windowWords } from "../parts/wait-words.ts";

/** Plan windows and budgets as meters, in words and percent. */

export interface Meter {
  readonly name: string;
  /** Used share, percent, within 0 and 100. */
  readonly used: number;
  /** Position of the line above which agents stop, percent. */
  readonly line?: number;
  /** True at or above the line, or at the end of the window. */
  readonly isFull: boolean;
  /** Used share in words. */
  readonly value: string;
  readonly notes: readonly string[];
}

type Window = AccountUse["windows"][string];

/** Windows of every subscription, with the names of their reserves. */
const RESERVES: ReadonlyMap<string, "fiveHour" | "sevenDay"> = new Map([
  ["five_hour", "fiveHour"],
  ["seven_day", "sevenDay"],
]);

/** Returns the windows of an account, the two that every subscription has first. */
export function windowMeters({ reserve, windows }: AccountUse, now: number): Meter[] {
  const names = [...new Set([...RESERVES.keys(), ...Object.keys(windows).toSorted()])];
  return names.map((name) => {
    const known = windows[name];
    const key = RESERVES.get(name);
    const kept = (key && reserve?.[key]) ?? 0;
    const used = usedOf(known, now);
    const isFull = used >= 100 - kept;
    return {
      name: windowWords(name),
      used: within(used),
      ...(kept > 0 && { line: 100 - kept }),
      isFull,
      value: valueOf(known, now),
      notes: [
        ...(kept > 0 ? [`${String(kept)} % kept for people${isFull ? ", so agents stop" : ""}`] : []),
        ...(known ? notesOf(known, now) : []),
        ...(known && key === undefined ? [SOURCES[known.source]] : []),
      ],
    };
  });
}

function isOver({ resetsAt }: Window, now: number): boolean {
  return resetsAt !== undefined && resetsAt <= now;
}

/** Same rule as `usedPercent` of the server. */
function usedOf(known: Window | undefined, now: number): number {
  if (!known || isOver(known, now)) return 0;
  return known.isRejected ? 100 : Math.round(known.usedPercent ?? 0);
}

function valueOf(known: Window | undefined, now: number): string {
  if (!known) return "nothing known, counts as free";
  if (isOver(known, now)) return "free";
  return known.isRejected ? "used up" : `${String(usedOf(known, now))} % used`;
}

function notesOf({ at, resetsAt }: Window, now: number): string[] {
  const age = `known ${ago(at, now)}`;
  if (resetsAt === undefined) return [age];
  if (resetsAt <= now) return [`reset ${shortTime(resetsAt, now)}`, age];
  return [`resets ${shortTime(resetsAt, now)}, in ${duration(minutes(resetsAt - now))}`, age];
}

/** Rounds up to minutes, so that the text does not change every second. */
function minutes(ms: number): number {
  return Math.ceil(ms / 60_000) * 60_000;
}

/** Origin of the knowledge about windows of a model, which responses do not report. */
const SOURCES: Readonly<Record<Window["source"], string>> = {
  headers: "from responses",
  rejection: "known from a rejection only",
  usage: "known from Claude Code’s usage method only",
};

export function budgetMeter({ name, reservedUsd, scope, spentUsd, unknownUsd, usdPerDay }: BudgetUse): Meter {
  const taken = spentUsd + reservedUsd;
  const used = usdPerDay === undefined || usdPerDay <= 0 ? 0 : Math.round((taken / usdPerDay) * 100);
  const bound = usdPerDay === undefined ? "" : ` of ${usd(usdPerDay)} a day`;
  return {
    name: scope === "principal" ? name : `profile ${name}`,
    used: within(used),
    isFull: usdPerDay !== undefined && taken >= usdPerDay,
    value: `${usd(spentUsd)} spent${bound}`,
    notes: [
      ...(reservedUsd > 0 ? [`${usd(reservedUsd)} reserved by running turns`] : []),
      ...(unknownUsd > 0 ? [`${usd(unknownUsd)} of it at an unknown price`] : []),
      ...(usdPerDay === undefined ? ["bound unknown here"] : []),
    ],
  };
}

function within(percent: number): number {
  return Math.min(100, Math.max(0, percent));
}
