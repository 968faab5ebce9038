import type { SessionRow } from "../../../src/console/wire.ts";
import { shortTime } from "./format.ts";

/** Plan windows, and waits for them, in words. */

/** Same names as `windowName` of the server. */
const WINDOWS: ReadonlyMap<string, string> = new Map([
  ["five_hour", "5-hour window"],
  ["seven_day", "weekly window"],
  ["seven_day_opus", "weekly Opus window"],
  ["seven_day_sonnet", "weekly Sonnet window"],
]);

export function windowWords(window: string): string {
  return WINDOWS.get(window) ?? `window ${window}`;
}

/** Reason why a session stands still, to follow its name: "waits for the 5-hour window until 14:00". */
export function waitWords(waiting: NonNullable<SessionRow["waiting"]>, now: number): string {
  const { ahead = 0, kind, until } = waiting;
  if (kind === "slot") return `waits for a slot (${ahead === 0 ? "next to start" : `${String(ahead)} ahead`})`;
  if (kind === "environment") return "waits for a client of its environment";
  const what = awaited(waiting);
  if (until === undefined) return `waits for ${what}`;
  return until > now ? `waits for ${what} until ${shortTime(until, now)}` : `waited for ${what}`;
}

function awaited({ kind, window }: NonNullable<SessionRow["waiting"]>): string {
  if (kind === "budget") return "the day’s budget";
  const name = window === undefined ? "plan" : windowWords(window);
  return kind === "plan_reserve" ? `the reserve of the ${name}` : `the ${name}`;
}
