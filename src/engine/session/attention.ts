import { randomUUID } from "node:crypto";
import type { Command } from "../../domain/command.ts";
import type { Ownership } from "../ownership.ts";
import type { Clock, Logger, SessionBackend, SessionRecord } from "../ports.ts";

/** Who counts for how long no client attends to a session is told at most this often that one does, ms. */
const TELL_MS = 30_000;
/** The same in relation to the time after which a session is unattended. */
const SHARE = 10;
/** Sessions of which it is remembered; the one told of longest ago is forgotten first. */
const MAX_TOLD = 10_000;

interface Dependencies {
  readonly backend: Pick<SessionBackend, "nodeId">;
  readonly clock: Pick<Clock, "tick">;
  readonly log: Pick<Logger, "debug">;
  readonly unattended?: { readonly afterMs: number } | undefined;
}

type Owners = Pick<Ownership, "attend" | "command" | "owns" | "stateOf" | "tell">;

/** Tells the owners of sessions that a client waits on them, reads or follows them, which it may do every second. */
export class Attention {
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
      if (unattended && this.#isDue(id, unattended.afterMs / SHARE)) this.#ownership.attend(id);
      return;
    }
    // Another server that goes on without clients; one without an owner counts nothing.
    const isForeign = owner?.alive === true && owner.nodeId !== backend.nodeId;
    if (!isForeign || !state.attendance || !this.#isDue(id, TELL_MS)) return;
    // A reader takes nothing over.
    this.#quietly(record, this.#ownership.tell(attend(record), id));
  }

  /** Of these sessions those that worked on unattended; from here on a client attends to them. */
  take(records: readonly SessionRecord[]): SessionRecord[] {
    const found = records
      .map((record) => ({ ...record, state: this.#ownership.stateOf(record.id) ?? record.state }))
      .filter(({ state }) => state.attendance?.work !== undefined);
    for (const record of found) this.#quietly(record, this.#ownership.command(attend(record), record));
    return found;
  }

  /** Not waited for: the owner may be another server. */
  #quietly({ id: sessionId }: SessionRecord, told: Promise<unknown>): void {
    told.catch((error: unknown) => {
      this.#dependencies.log.debug("an owner was not told of a client", { sessionId, error: String(error) });
    });
  }

  #isDue(id: string, everyMs: number): boolean {
    const now = this.#dependencies.clock.tick();
    const before = this.#told.get(id);
    if (before !== undefined && now - before < Math.min(everyMs, TELL_MS)) return false;
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
