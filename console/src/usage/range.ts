import type { Amounts, Usage } from "../../../src/console/wire-usage.ts";

/** Days in the time zone of the user. */

export const RANGES = [7, 30, 90] as const;
export type Range = (typeof RANGES)[number];

export type Day = Usage["days"][number];

export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Start of the first of `range` days; the last day is today. */
export function startOfRange(range: Range, now: Date): number {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - range + 1).getTime();
}

/** All days after `since`, including days without usage. Days of the server after today are kept, because clocks differ. */
export function everyDay({ days, since }: Usage, now: Date): Day[] {
  const byName = new Map(days.map((day) => [day.day, day]));
  const last = [nameOf(now), ...byName.keys()].toSorted().at(-1) ?? "";
  const start = new Date(since);
  const all: Day[] = [];
  for (let n = 0; n <= MAX_DAYS; n++) {
    const day = nameOf(new Date(start.getFullYear(), start.getMonth(), start.getDate() + n));
    if (day > last) break;
    all.push(byName.get(day) ?? { ...NOTHING, day, costByModel: {} });
  }
  return all;
}

/** Maximum range of a report of the server, days. */
const MAX_DAYS = 366;

const NOTHING: Amounts = {
  turns: 0,
  failed: 0,
  costUsd: 0,
  tokens: { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 },
  durationMs: 0,
  workedMs: 0,
  waitedMs: 0,
};

function nameOf(date: Date): string {
  const digits = [date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0"));
  return [date.getFullYear(), ...digits].join("-");
}

/** Formats 2026-01-31 as "Jan 31"; `weekday` adds the day of the week. */
export function dayWords(day: string, weekday = false): string {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  const words = new Date(year, month - 1, date);
  return words.toLocaleDateString("en-US", { month: "short", day: "numeric", ...(weekday && { weekday: "short" }) });
}
