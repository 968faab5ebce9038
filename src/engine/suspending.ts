import { randomUUID } from "node:crypto";
import type { SuspendRequest } from "../domain/control.ts";
import type { Ownership } from "./ownership.ts";
import type { Logger, SessionBackend, SessionRecord } from "./ports.ts";

interface Dependencies {
  readonly backend: Pick<SessionBackend, "rows">;
  readonly log: Pick<Logger, "warn">;
}

interface SuspendFilter {
  readonly isOurs: (sessionId: string) => boolean;
  readonly mayNot: (record: SessionRecord) => boolean;
}

/** Asks the owners of sessions to close their processes. */
export class Suspending {
  readonly #dependencies: Dependencies;
  readonly #ownership: Pick<Ownership, "command" | "owned">;
  /** Sessions with a process that did not close after the last request. */
  readonly #unclosed = new Set<string>();

  constructor(dependencies: Dependencies, ownership: Pick<Ownership, "command" | "owned">) {
    this.#dependencies = dependencies;
    this.#ownership = ownership;
  }

  /** Closes the process once nothing runs. The result is seen in the store. */
  async suspend(record: SessionRecord, reason: SuspendRequest["reason"] | undefined): Promise<void> {
    const { id: sessionId, principal } = record;
    const data = { by: "server", request: { do: "suspend", ...(reason && { reason }) } } as const;
    try {
      await this.#ownership.command({ id: randomUUID(), principal, kind: "control", data }, record);
      this.#unclosed.delete(sessionId);
    } catch (error) {
      // Logs the first failure only, because another session may wait for the slot, and asks ten times a second.
      if (this.#unclosed.has(sessionId)) return;
      this.#unclosed.add(sessionId);
      const about = { sessionId, reason: reason ?? "idle", error: String(error) };
      this.#dependencies.log.warn("a process was not closed", about);
    }
  }

  /** Suspends the sessions of this node for which `isOurs` and `mayNot` hold. Resolves with their number. */
  async suspendWhere({ isOurs, mayNot }: SuspendFilter, reason: SuspendRequest["reason"]): Promise<number> {
    const ids = this.#ownership.owned.filter(isOurs);
    const records = await Promise.all(ids.map(async (id) => this.#dependencies.backend.rows.get(id)));
    // Includes unreadable sessions, because `mayNot` might hold for them.
    const named = records.filter((each) => each !== undefined).filter((each) => each.unreadable ?? mayNot(each));
    await Promise.all(named.map(async (record) => this.suspend(record, reason)));
    return named.length;
  }
}
