/** The memory of a server over time, and whether what it holds grows. */
import { residentMb } from "../processes.mjs";

const LOOK_MS = 1_000;
const HEAP = /^nodejs_heap_size_used_bytes (\d+)/m;

/**
 * Looks every second until the returned function is called, which resolves with the samples, in MB: `resident` is what the
 * process has of the system (undefined where that does not tell), `heap` what JavaScript uses of it.
 */
export function watchMemory({ door, pid }) {
  const looks = [];
  const look = async () => ({ resident: residentMb(pid), heap: await heapMb(door) });
  const timer = setInterval(() => looks.push(look()), LOOK_MS);
  return async () => {
    clearInterval(timer);
    return Promise.all(looks);
  };
}

async function heapMb({ token, url }) {
  const response = await fetch(new URL("/metrics", url), { headers: { authorization: `Bearer ${token}` } });
  return Number(HEAP.exec(await response.text())?.[1]) / 1_000_000;
}

/**
 * What lives: the least that the heap had in use in each third of the time, which is soon after a collection. V8 lets garbage
 * lie while the machine has memory, so that what the process has of the system tells how much there was to do. The first
 * third is warm-up; the last over the middle says whether it grew.
 */
export function thirdsOf(samples) {
  const third = Math.floor(samples.length / 3);
  if (third === 0) return undefined;
  const least = (part) => Math.min(...samples.slice(part * third, (part + 1) * third).map(({ heap }) => heap));
  const [middle, last] = [least(1), least(2)];
  const resident = samples.map((sample) => sample.resident).filter((mb) => mb !== undefined);
  return { middle, last, growth: last / middle, most: resident.length > 0 ? Math.max(...resident) : undefined };
}
