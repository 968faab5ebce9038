/** The memory of a process over time, and whether it grew. */
import { median } from "../figures.mjs";
import { residentMb } from "../processes.mjs";

const LOOK_MS = 1_000;

/** Looks every second until the returned function is called, which returns the samples in MB. */
export function watchMemory(pid) {
  const samples = [];
  const timer = setInterval(() => samples.push(residentMb(pid)), LOOK_MS);
  return () => {
    clearInterval(timer);
    return samples.filter((sample) => sample !== undefined);
  };
}

/** The medians of three equal parts of the time: the first is warm-up, the last over the middle says whether it grew. */
export function thirdsOf(samples) {
  const third = Math.floor(samples.length / 3);
  if (third === 0) return undefined;
  const [first, middle, last] = [0, 1, 2].map((part) => median(samples.slice(part * third, (part + 1) * third)));
  return { first, middle, last, most: Math.max(...samples), growth: last / middle };
}
