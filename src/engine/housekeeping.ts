import type { SessionStatus } from "../domain/session.ts";
import type { Clock, Logger, SessionBackend } from "./ports.ts";

/** What is kept, and how often it is looked after. */
export interface Retention {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
  readonly everyMs: number;
}

/** Sessions in which nothing runs; the others are nobody's to delete. */
const AT_REST: readonly SessionStatus[] = ["idle", "error", "cancelled", "closed"];

/** Small steps: between two of them everybody else gets their turn. */
const STEP = 100;
/** Smaller still where the oldest go for want of room: no more than must be. */
const ROOM_STEP = 10;

interface House {
  readonly backend: SessionBackend;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes over what dead servers have left running. */
  readonly recoverAbandoned: () => Promise<void>;
}

/** Begins to look after the store; the returned function ends that, and waits for a round that is under way. Failures are logged, and tried again next time. */
export function keepHouse(house: House, retention: Retention): () => Promise<void> {
  const { clock, log } = house;
  let cancel: () => void = () => undefined;
  let stopped = false;
  const round = async () => {
    await house.recoverAbandoned().catch((error: unknown) => log.warn("sweep failed", { error: String(error) }));
    await tidy(house, retention).catch((error: unknown) => log.warn("clean-up failed", { error: String(error) }));
    if (!stopped)
      cancel = clock.at(clock.now() + retention.everyMs, () => {
        running = round();
      });
  };
  let running = round();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}

async function tidy({ backend, clock, log }: House, { maxAgeMs, maxBytes }: Retention): Promise<void> {
  const aged = await purge(backend, {
    before: clock.now() - maxAgeMs,
    step: STEP,
    until: () => Promise.resolve(false),
  });
  const fits = async () => (await backend.size()) <= maxBytes;
  const crowded = (await fits()) ? 0 : await purge(backend, { before: clock.now(), step: ROOM_STEP, until: fits });
  if (aged + crowded > 0) log.info("old sessions deleted", { forAge: aged, forRoom: crowded });
}

interface Purge {
  before: number;
  step: number;
  /** Ends the purge when it resolves to true. */
  until: () => Promise<boolean>;
}

async function purge(backend: SessionBackend, { before, step, until }: Purge): Promise<number> {
  let deleted = 0;
  for (;;) {
    const count = await backend.purge({ before, statuses: AT_REST, limit: step });
    deleted += count;
    if (count < step || (await until())) return deleted;
  }
}
