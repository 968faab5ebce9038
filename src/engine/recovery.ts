import { isAtWork } from "../domain/session.ts";
import { inRounds } from "./clock.ts";
import type { Ownership, TakenOver } from "./ownership.ts";
import type { Operator } from "./policy/operator.ts";
import { environmentOfLost, GONE } from "./session/environment.ts";
import { isTheirs } from "./shim-standing.ts";
import type { AgentRuntime, Clock, Logger, SessionBackend, SessionRecord } from "./ports.ts";

/**
 * What a server that died has left: here and nowhere else is said which sessions are abandoned, watched for them, and seen to it
 * that they are taken over. What taking over does to a session is a step like any other: `attached` where its process can be gone on
 * with, else `recovered` (step/process.ts).
 */

/** Sessions that one look takes over. */
const LOOK = 50;

/** Recorded as at work by an owner that is dead, or that gave it up without saying so. */
export function isAbandoned({ owner, state }: Pick<SessionRecord, "owner" | "state">): boolean {
  return owner?.alive !== true && isAtWork(state);
}

interface House extends Pick<Operator, "addsOnlyBounds" | "environmentId"> {
  readonly runtime: Pick<AgentRuntime, "environments">;
  /** Whether a prompt would not be refused, with this environment record. */
  readonly mayRun: (record: SessionRecord, environmentId: string) => Promise<boolean>;
}

/**
 * A session whose process has gone, as its next owner goes on with it: a turn is not run on, nor started, where its prompt would be
 * refused, or where no client comes that has the environment for it.
 */
export async function asTakenOver(record: SessionRecord, { mayRun, runtime, ...operator }: House): Promise<TakenOver> {
  const { spec, state } = record;
  const runs = isAtWork(state) && (spec.onLost === "resume" || state.process.phase === "starting");
  if (!runs) return { record, mayStart: false };
  const lost = { record: { ...record, spec: { ...spec, onLost: "report" as const } }, mayStart: false };
  const environmentId = await environmentOfLost(operator, runtime.environments, record);
  if (environmentId === undefined) return { ...lost, why: GONE };
  // It is judged as one for which a process is started.
  const mayStart = await mayRun({ ...record, state: { ...state, process: { phase: "none" } } }, environmentId);
  return mayStart ? { record, mayStart, environmentId } : lost;
}

interface Dependencies {
  readonly backend: Pick<SessionBackend, "leases" | "rows">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Logger, "warn">;
  readonly ownership: Pick<Ownership, "claim" | "owns">;
  readonly runtime: Pick<AgentRuntime, "endAllLeftovers" | "shimOf">;
}

export class Recovery {
  readonly #dependencies: Dependencies;
  /** One for each session, however many ask for it. */
  readonly #takeOvers = new Map<string, Promise<SessionRecord>>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * The session as a reader may see it: an abandoned one is taken over first, and the result is waited for, so that its row and
   * its log agree and no dead turn is shown as running.
   */
  async recovered(record: SessionRecord): Promise<SessionRecord> {
    if (!isAbandoned(record) || (await isTheirs(record, this.#dependencies.runtime))) return record;
    const underWay = this.#takeOvers.get(record.id);
    if (underWay) return underWay;
    const takeOver = this.#takeOver(record).finally(() => this.#takeOvers.delete(record.id));
    this.#takeOvers.set(record.id, takeOver);
    return takeOver;
  }

  /** Looks for what dead servers have left, now and every so often; the returned function ends that. */
  watch(everyMs: number): () => Promise<void> {
    const { clock, log } = this.#dependencies;
    return inRounds(clock, everyMs, async () => {
      await this.#endSessions().catch((error: unknown) => log.warn("sweep failed", { error: String(error) }));
      await this.#endProcesses().catch((error: unknown) =>
        log.warn("sweep of processes failed", { error: String(error) }),
      );
    });
  }

  async #takeOver(record: SessionRecord): Promise<SessionRecord> {
    const { backend, ownership } = this.#dependencies;
    // The record was read a while ago: another node may have been quicker.
    const found = (await backend.rows.get(record.id)) ?? record;
    // What this server runs, it runs, also when its lease has run out because the machine slept.
    if (!isAbandoned(found) || ownership.owns(found.id) || (await isTheirs(found, this.#dependencies.runtime)))
      return found;
    const actor = await ownership.claim(found);
    await actor?.settled();
    return (await backend.rows.get(found.id)) ?? found;
  }

  async #endSessions(): Promise<void> {
    const { backend, log } = this.#dependencies;
    const found = await backend.leases.abandoned(LOOK);
    // At once, because each may wait for its client. Logs a failed takeover, so that the other sessions do not fail with it.
    const takeOver = async (record: SessionRecord) =>
      this.recovered(record).catch((error: unknown) =>
        log.warn("a session was not taken over", { sessionId: record.id, error: String(error) }),
      );
    await Promise.all(found.map(takeOver));
  }

  /** Also those that no session is recorded to have. */
  async #endProcesses(): Promise<void> {
    const processes = await this.#dependencies.runtime.endAllLeftovers();
    if (processes > 0) this.#dependencies.log.warn("ended what a server that died had left running", { processes });
  }
}
