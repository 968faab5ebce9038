import type { SessionStatus } from "../domain/session.ts";
import { repeatEvery } from "./clock.ts";
import type { Clock, Logger, SessionBackend, StoreMaintenance } from "./ports.ts";

/** Bounds of the store, and the interval of clean-ups. */
export interface Retention {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
  readonly everyMs: number;
}

/** Statuses of sessions that may be deleted, because nothing runs in them. */
const AT_REST: readonly SessionStatus[] = ["idle", "error", "cancelled", "closed"];

/** Number of sessions deleted at once; small, because other work runs in between. */
const STEP = 100;
/** Number of sessions deleted at once for want of room; smaller still, so that no more go than must. */
const ROOM_STEP = 10;

/** Time after a set clock without deletion for age, ms, because the clock may have been set wrongly. */
const HOLD_MS = 3_600_000;
/** Minimum jump of a set clock, ms. The clock of a machine that slept jumps too, but far less than an age for deletion. */
const SET_BY_MS = 86_400_000;

interface Dependencies {
  readonly backend: Pick<SessionBackend, "maintenance">;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Cleans up the store every `everyMs`; the returned function stops the rounds, and waits for a running round. Failures are logged and
 * retried in the next round.
 */
export function startRetention(dependencies: Dependencies, retention: Retention): () => Promise<void> {
  const { clock, log } = dependencies;
  const ages = new ClockWatch(clock);
  return repeatEvery(clock, retention.everyMs, async () => {
    await purgeExpired(dependencies, retention, ages.isTrusted()).catch((error: unknown) =>
      log.warn("clean-up failed", { error: String(error) }),
    );
  });
}

/** Decides if ages by the system clock can be trusted, by comparison with the monotonic clock. */
export class ClockWatch {
  readonly #clock: Pick<Clock, "now" | "tick">;
  #difference: number;
  #setAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "now" | "tick">) {
    this.#clock = clock;
    this.#difference = clock.now() - clock.tick();
  }

  /** False for `HOLD_MS` after the clock was set by more than a day. */
  isTrusted(): boolean {
    const [now, tick] = [this.#clock.now(), this.#clock.tick()];
    if (Math.abs(now - tick - this.#difference) > SET_BY_MS) this.#setAt = tick;
    this.#difference = now - tick;
    return tick - this.#setAt >= HOLD_MS;
  }
}

async function purgeExpired(
  { backend: { maintenance }, clock, log }: Dependencies,
  retention: Retention,
  areAgesTrue: boolean,
): Promise<void> {
  const { maxAgeMs, maxBytes } = retention;
  const query = { before: clock.now() - maxAgeMs, step: STEP, until: () => Promise.resolve(false) };
  if (areAgesTrue) await maintenance.forget();
  const aged = areAgesTrue ? await purge(maintenance, query) : 0;
  const fits = async () => (await maintenance.size()) <= maxBytes;
  const crowded = (await fits()) ? 0 : await purge(maintenance, { before: clock.now(), step: ROOM_STEP, until: fits });
  if (aged + crowded > 0) log.info("old sessions deleted", { forAge: aged, forRoom: crowded });
}

interface Purge {
  before: number;
  step: number;
  /** Ends the purge once resolved to true. */
  until: () => Promise<boolean>;
}

async function purge(maintenance: StoreMaintenance, { before, step, until }: Purge): Promise<number> {
  let deleted = 0;
  for (;;) {
    const count = await maintenance.purge({ before, statuses: AT_REST, limit: step });
    deleted += count;
    if (count < step || (await until())) return deleted;
  }
}
