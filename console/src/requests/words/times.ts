/** Spans of time, short. */

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** "2:41", "1 h 05 min", "3 days"; "0:00" when it is over. */
export function leftWords(ms: number): string {
  const left = Math.max(0, ms);
  if (left >= 2 * DAY) return `${String(Math.floor(left / DAY))} days`;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (left >= HOUR) return `${String(Math.floor(left / HOUR))} h ${two((left % HOUR) / MINUTE)} min`;
  return `${String(Math.floor(left / MINUTE))}:${two((left % MINUTE) / SECOND)}`;
}

export function agoWords(ms: number): string {
  if (ms < MINUTE) return "just now";
  if (ms < HOUR) return `${String(Math.floor(ms / MINUTE))} min ago`;
  if (ms < 2 * DAY) return `${String(Math.floor(ms / HOUR))} h ago`;
  return `${String(Math.floor(ms / DAY))} days ago`;
}

/** The time of day; of another day with its date. */
export function clockWords(at: number, now: number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  const time = { hour: "2-digit", minute: "2-digit" } as const;
  return isToday
    ? date.toLocaleTimeString(undefined, time)
    : date.toLocaleString(undefined, { ...time, month: "short", day: "numeric" });
}
