/** Samples the memory of a server over time and judges growth. */
import { residentMb } from "../processes.mjs";

const LOOK_MS = 1_000;
const HEAP = /^nodejs_heap_size_used_bytes (\d+)/m;

/**
 * Samples every second until the returned function is called. Resolves to the samples, in MB: `resident` is the resident set
 * (`undefined` if the system does not report the set), `heap` the used JavaScript heap.
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
 * Returns live memory: the minimum of `heap` in each third of the time, soon after a collection. V8 delays collections while
 * the machine has free memory, so `resident` follows the load. The first third is warm-up; `last` over `middle` shows growth.
 */
export function thirdsOf(samples) {
  const third = Math.floor(samples.length / 3);
  if (third === 0) return undefined;
  const least = (part) => Math.min(...samples.slice(part * third, (part + 1) * third).map(({ heap }) => heap));
  const [middle, last] = [least(1), least(2)];
  const resident = samples.map((sample) => sample.resident).filter((mb) => mb !== undefined);
  return { middle, last, growth: last / middle, most: resident.length > 0 ? Math.max(...resident) : undefined };
}
