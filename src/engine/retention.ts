import type { SessionStatus } from "../domain/session.ts";
import { inRounds } from "./clock.ts";
import type { Clock, Logger, SessionBackend, StoreMaintenance } from "./ports.ts";

/** What is kept, and how often it is looked after. */
export interface Retention {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
  readonly everyMs: number;
}

/** Only sessions in which nothing runs are deleted. */
const AT_REST: readonly SessionStatus[] = ["idle", "error", "cancelled", "closed"];

/** Small batches: other work runs between two of them. */
const STEP = 100;
/** Smaller still where the oldest go for want of room: no more than must be. */
const ROOM_STEP = 10;

/** The clock may have been set wrongly: so long after it was, nothing is deleted for its age. ms */
const HOLD_MS = 3_600_000;
/** A machine that sleeps sets its clock, too: that is far less than an age at which anything is deleted. ms */
const SET_BY_MS = 86_400_000;

interface Dependencies {
  readonly backend: Pick<SessionBackend, "maintenance">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Begins to look after the store; the returned function ends that, and waits for a round that is under way. Failures are logged, and tried again next time. */
export function startRetention(dependencies: Dependencies, retention: Retention): () => Promise<void> {
  const { clock, log } = dependencies;
  const ages = new Ages(clock);
  return inRounds(clock, retention.everyMs, async () => {
    await purgeExpired(dependencies, retention, ages.areTrue()).catch((error: unknown) =>
      log.warn("clean-up failed", { error: String(error) }),
    );
  });
}

/** Whether ages by the system clock can be trusted: it is compared with the monotonic clock. */
export class Ages {
  readonly #clock: Pick<Clock, "now" | "tick">;
  #difference: number;
  #setAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "now" | "tick">) {
    this.#clock = clock;
    this.#difference = clock.now() - clock.tick();
  }

  /** False for a while after the clock was set by more than a day. */
  areTrue(): boolean {
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
  const aged = areAgesTrue ? await purge(maintenance, query) : 0;
  const fits = async () => (await maintenance.size()) <= maxBytes;
  const crowded = (await fits()) ? 0 : await purge(maintenance, { before: clock.now(), step: ROOM_STEP, until: fits });
  if (aged + crowded > 0) log.info("old sessions deleted", { forAge: aged, forRoom: crowded });
}

interface Purge {
  before: number;
  step: number;
  /** Ends the purge when it resolves to true. */
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
