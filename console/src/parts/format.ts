/** Numbers, times and names for display. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Age from which `ago` shows the date. */
const LONG_AGO = 30 * DAY;

/** Length of time: 0.4 s, 12 s, 3 min 05 s, 2 h 10 min, 3 d 4 h. */
export function duration(ms: number): string {
  if (ms < 10 * SECOND) return `${(Math.max(0, ms) / SECOND).toFixed(1)} s`;
  const whole = Math.round(ms / SECOND) * SECOND;
  if (whole < MINUTE) return `${String(whole / SECOND)} s`;
  if (whole < HOUR) return `${wholeUnits(whole, MINUTE)} min ${twoDigits(wholeUnits(whole % MINUTE, SECOND))} s`;
  if (whole < DAY) return `${wholeUnits(whole, HOUR)} h ${twoDigits(wholeUnits(whole % HOUR, MINUTE))} min`;
  return `${wholeUnits(whole, DAY)} d ${wholeUnits(whole % DAY, HOUR)} h`;
}

/** Like `duration`, but in whole seconds, for running counters. */
export function runningDuration(ms: number): string {
  return ms < MINUTE ? `${wholeUnits(Math.max(0, ms), SECOND)} s` : duration(Math.floor(ms / SECOND) * SECOND);
}

/** Age of `at`: "5 min ago". A time in the future counts as "just now", because clocks differ. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  if (ms < 10 * SECOND) return "just now";
  if (ms < MINUTE) return `${wholeUnits(ms, SECOND)} s ago`;
  if (ms < HOUR) return `${wholeUnits(ms, MINUTE)} min ago`;
  if (ms < DAY) return `${wholeUnits(ms, HOUR)} h ago`;
  if (ms < LONG_AGO) return `${wholeUnits(ms, DAY)} d ago`;
  return new Date(at).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

/** Date and time of day in the local time zone. */
export function moment(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Returns "<$0.01" for less than a cent, so that "$0.00" means nothing at all. */
export function usd(amount: number): string {
  if (amount > 0 && amount < 0.01) return "<$0.01";
  return `$${amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** 1 turn, 2 turns */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en-US")} ${n === 1 ? one : many}`;
}

/** Keeps the informative end of a long path: …/projects/shop */
export function shortPath(path: string, longest = 32): string {
  if (path.length <= longest) return path;
  const separator = path.includes("/") ? "/" : "\\";
  const kept: string[] = [];
  let length = 1;
  for (const name of path.split(separator).toReversed()) {
    length += name.length + 1;
    if (kept.length > 0 && length > longest) break;
    kept.unshift(name);
  }
  return `…${separator}${kept.join(separator)}`;
}

function wholeUnits(ms: number, unit: number): string {
  return String(Math.floor(ms / unit));
}

function twoDigits(digits: string): string {
  return digits.padStart(2, "0");
}

/** Time left: "2:41", "1 h 05 min", "3 days"; "0:00" at the end. */
export function timeLeft(ms: number): string {
  const left = Math.max(0, ms);
  if (left >= 2 * DAY) return `${String(Math.floor(left / DAY))} days`;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (left >= HOUR) return `${String(Math.floor(left / HOUR))} h ${two((left % HOUR) / MINUTE)} min`;
  return `${String(Math.floor(left / MINUTE))}:${two((left % MINUTE) / SECOND)}`;
}

/** Time of day in hours and minutes, with the day of the week or the date unless `at` is on the day of `now`. */
export function shortTime(at: number, now: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, { timeStyle: "short" });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  const isNear = Math.abs(at - now) < 6 * DAY;
  const day = date.toLocaleDateString(undefined, isNear ? { weekday: "short" } : { day: "numeric", month: "short" });
  return `${day} ${time}`;
}

/** Returns 12:34:56, with the date unless `at` is on the day of `now`. */
export function timeOfDay(at: number, now = Date.now()): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString("en-GB");
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
