/** 12:34:56, with the day where it is another than `now`'s. */
export function timeOfDay(at: number, now = Date.now()): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString("en-GB");
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
