const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** How much time is left: "2:41", "1 h 05 min", "3 days"; "0:00" when it is over. */
export function leftWords(ms: number): string {
  const left = Math.max(0, ms);
  if (left >= 2 * DAY) return `${String(Math.floor(left / DAY))} days`;
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (left >= HOUR) return `${String(Math.floor(left / HOUR))} h ${two((left % HOUR) / MINUTE)} min`;
  return `${String(Math.floor(left / MINUTE))}:${two((left % MINUTE) / SECOND)}`;
}
