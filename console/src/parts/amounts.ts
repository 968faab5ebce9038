/** Times, lengths of time and money, as people read them. */

/** 12:34:56, with the day where it is another. */
export function clock(at: number, now = Date.now()): string {
  const time = new Date(at).toLocaleTimeString("en-GB");
  return new Date(at).toDateString() === new Date(now).toDateString() ? time : `${day(at)} ${time}`;
}

function day(at: number): string {
  return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function wholeTime(at: number): string {
  return new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** 0.4 s, 12 s, 3 min 5 s, 2 h 5 min, 3 d 4 h */
export function lasting(ms: number): string {
  if (ms < 10 * SECOND) return `${(Math.max(0, ms) / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${String(Math.floor(ms / SECOND))} s`;
  if (ms < HOUR) return two(ms, [MINUTE, "min"], [SECOND, "s"]);
  return ms < DAY ? two(ms, [HOUR, "h"], [MINUTE, "min"]) : two(ms, [DAY, "d"], [HOUR, "h"]);
}

type Unit = readonly [ms: number, name: string];

function two(ms: number, [great, greatName]: Unit, [small, smallName]: Unit): string {
  const rest = Math.floor((ms % great) / small);
  return `${String(Math.floor(ms / great))} ${greatName}${rest === 0 ? "" : ` ${String(rest)} ${smallName}`}`;
}

export function money(usd: number): string {
  return usd > 0 && usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : many}`;
}
