import { randomUUID } from "node:crypto";
import type { Command } from "../../domain/command.ts";
import type { Ownership } from "../ownership.ts";
import type { Clock, Logger, SessionBackend, SessionRecord } from "../ports.ts";

/** Minimum interval between `attend` commands, ms. */
const ATTEND_MS = 30_000;
/** Divisor of `afterMs`: the interval is at most a tenth of the time after which a session is unattended. */
const UNATTENDED_DIVISOR = 10;
/** Maximum number of sessions with a remembered time. The oldest is forgotten first. */
const MAX_TOLD = 10_000;

interface Dependencies {
  readonly backend: Pick<SessionBackend, "nodeId">;
  readonly clock: Pick<Clock, "tick">;
  readonly log: Pick<Logger, "debug">;
  readonly unattended?: { readonly afterMs: number } | undefined;
}

type Owners = Pick<Ownership, "attend" | "command" | "owns" | "stateOf" | "tell">;

/** Tells owners that a client waits on, reads or follows a session. Throttled, because clients may do so every second. */
export class AttendReporter {
  readonly #dependencies: Dependencies;
  readonly #ownership: Owners;
  readonly #told = new Map<string, number>();

  constructor(dependencies: Dependencies, ownership: Owners) {
    this.#dependencies = dependencies;
    this.#ownership = ownership;
  }

  note(record: SessionRecord): void {
    const { backend, unattended } = this.#dependencies;
    const { id, owner, state } = record;
    if (this.#ownership.owns(id)) {
      if (unattended && this.#isDue(id, unattended.afterMs / UNATTENDED_DIVISOR)) this.#ownership.attend(id);
      return;
    }
    // Tells only another server that goes on without clients. Without an owner nothing counts attendance.
    const isForeign = owner?.alive === true && owner.nodeId !== backend.nodeId;
    if (!isForeign || !state.attendance || !this.#isDue(id, ATTEND_MS)) return;
    // Uses `tell`, because a reader takes nothing over.
    this.#quietly(record, this.#ownership.tell(attend(record), id));
  }

  /** Returns the sessions that worked on unattended, and marks them as attended. */
  take(records: readonly SessionRecord[]): SessionRecord[] {
    const found = records
      .map((record) => ({ ...record, state: this.#ownership.stateOf(record.id) ?? record.state }))
      .filter(({ state }) => state.attendance?.work !== undefined);
    for (const record of found) this.#quietly(record, this.#ownership.command(attend(record), record));
    return found;
  }

  /** Not awaited, because the owner may be another server. */
  #quietly({ id: sessionId }: SessionRecord, told: Promise<unknown>): void {
    told.catch((error: unknown) => {
      this.#dependencies.log.debug("an owner was not told of a client", { sessionId, error: String(error) });
    });
  }

  #isDue(id: string, everyMs: number): boolean {
    const now = this.#dependencies.clock.tick();
    const before = this.#told.get(id);
    if (before !== undefined && now - before < Math.min(everyMs, ATTEND_MS)) return false;
    this.#told.delete(id);
    this.#told.set(id, now);
    const [oldest] = this.#told.keys();
    if (oldest !== undefined && this.#told.size > MAX_TOLD) this.#told.delete(oldest);
    return true;
  }
}

function attend({ principal }: SessionRecord): Command {
  return { id: randomUUID(), principal, kind: "attend", data: {} };
}
