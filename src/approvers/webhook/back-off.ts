/** How long a delivery waits for its next attempt. */

const FACTOR = 4;

/** However often it has failed, and whatever the receiver wishes, ms. */
const LONGEST_MS = 600_000;

export interface Failed {
  /** How many attempts there have been. */
  readonly attempts: number;
  /** The first wait, ms. */
  readonly retryMs: number;
  /** What the receiver asks for, ms. */
  readonly retryAfterMs?: number | undefined;
  /** From 0 to 1: receivers that come back are not met by all that waits at once. */
  readonly random: number;
}

/** ms */
export function backOff({ attempts, random, retryAfterMs = 0, retryMs }: Failed): number {
  const wait = Math.min(retryMs * FACTOR ** (attempts - 1), LONGEST_MS) * (0.75 + random / 2);
  return Math.round(Math.max(wait, Math.min(retryAfterMs, LONGEST_MS)));
}

/** Of a Retry-After header, in seconds or as a date: ms from `now`; undefined where there is none that can be read. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
