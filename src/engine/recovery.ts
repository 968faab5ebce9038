import { isAtWork, waitsForNode } from "../domain/session.ts";
import type { ActorContext, TakeoverTerms } from "./actor-context.ts";
import { repeatEvery } from "./clock.ts";
import type { Ownership } from "./ownership.ts";
import type { Operator } from "./policy/operator.ts";
import { waitForEnvironment, ENVIRONMENT_GONE } from "./session/environment.ts";
import { belongsToOtherDaemon } from "./shim-relation.ts";
import type { AgentRuntime, Clock, Logger, SessionBackend, SessionRecord } from "./ports.ts";

/**
 * Finds abandoned sessions and takes them over. No other code does. A takeover is a step like any other: its input is
 * `attached` if this server can go on with the process, otherwise `recovered` (step/process.ts).
 */

/** Number and interval of looks whether another node has taken a session over, ms. */
const [TAKING_LOOKS, TAKING_LOOK_MS] = [20, 100];
/** Maximum number of sessions taken over in one sweep. */
const MAX_TAKEOVERS = 50;

/** True if the state says that work of the session is under way, but no living server owns the session. */
export function isAbandoned({ owner, state }: Pick<SessionRecord, "owner" | "state">): boolean {
  return owner?.alive !== true && isAtWork(state) && !waitsForNode(state);
}

interface TakeoverContext
  extends Pick<Operator, "addsOnlyBounds" | "environmentId">, Pick<ActorContext, "objectionToStart"> {
  readonly runtime: Pick<AgentRuntime, "environments">;
}

/**
 * Decides how to go on with a session after its process has gone. If the prompt of the turn would be refused, or no client with
 * the environment comes, the turn is reported as lost: neither rerun nor started.
 */
export async function judgeTakeover(
  record: SessionRecord,
  { objectionToStart, runtime, ...operator }: TakeoverContext,
): Promise<TakeoverTerms> {
  const { spec, state } = record;
  // A turn that waits at a limit needs no process before the end of its wait, and looks for an environment then.
  const runs = !state.waiting && isAtWork(state) && (spec.onLost === "resume" || state.process.phase === "starting");
  if (!runs) return { record, mayStart: false };
  const lost = { record: { ...record, spec: { ...spec, onLost: "report" as const } }, mayStart: false };
  const environmentId = await waitForEnvironment(operator, runtime.environments, record);
  if (environmentId === undefined) return { ...lost, why: ENVIRONMENT_GONE };
  // Hides the lost process, because a new one has to be started.
  const shown = { ...record, state: { ...state, process: { phase: "none" as const } } };
  const objection = await objectionToStart(shown, environmentId);
  return objection === undefined ? { record, mayStart: true, environmentId } : lost;
}

interface Dependencies {
  readonly backend: Pick<SessionBackend, "leases" | "machines" | "rows">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Logger, "warn">;
  readonly ownership: Pick<Ownership, "claim" | "owns">;
  readonly runtime: Pick<AgentRuntime, "endAllLeftovers" | "shimRelation">;
}

export class Recovery {
  readonly #dependencies: Dependencies;
  /** Running takeovers by session id, shared by concurrent readers. */
  readonly #takeOvers = new Map<string, Promise<SessionRecord>>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Returns the session as a reader may see it. Takes an abandoned session over first and waits for the result, so that row and
   * log agree and no dead turn is shown as running.
   */
  async recovered(record: SessionRecord): Promise<SessionRecord> {
    if (!isAbandoned(record) || (await belongsToOtherDaemon(record, this.#dependencies.runtime))) return record;
    const underWay = this.#takeOvers.get(record.id);
    if (underWay) return underWay;
    const takeOver = this.#takeOver(record).finally(() => this.#takeOvers.delete(record.id));
    this.#takeOvers.set(record.id, takeOver);
    return takeOver;
  }

  /**
   * Takes over abandoned sessions and ends leftover processes, now and `everyMs` after each sweep. Call the returned function
   * to stop.
   */
  watch(everyMs: number): () => Promise<void> {
    const { clock, log } = this.#dependencies;
    return repeatEvery(clock, everyMs, async () => {
      await this.#takeOverAbandoned().catch((error: unknown) => log.warn("sweep failed", { error: String(error) }));
      await this.#endLeftovers().catch((error: unknown) =>
        log.warn("sweep of processes failed", { error: String(error) }),
      );
    });
  }

  async #takeOver(record: SessionRecord): Promise<SessionRecord> {
    const { backend, ownership } = this.#dependencies;
    // Reads the record again, because another node may have taken the session over.
    const found = (await backend.rows.get(record.id)) ?? record;
    // A session of this server stays here, even after its lease has run out during sleep of the machine.
    if (
      !isAbandoned(found) ||
      ownership.owns(found.id) ||
      (await belongsToOtherDaemon(found, this.#dependencies.runtime))
    )
      return found;
    const actor = await ownership.claim(found);
    if (actor) await actor.settled();
    else if (backend.machines) await this.#untilTaken(found.id);
    return (await backend.rows.get(found.id)) ?? found;
  }

  /** Waits for the node to which the session was offered, so that a dead turn is not shown as running meanwhile. */
  async #untilTaken(sessionId: string): Promise<void> {
    const { backend, clock } = this.#dependencies;
    for (let look = 0; look < TAKING_LOOKS; look += 1) {
      const record = await backend.rows.get(sessionId);
      if (!record || !isAbandoned(record)) return;
      await new Promise<void>((resolve) => clock.after(TAKING_LOOK_MS, resolve));
    }
  }

  async #takeOverAbandoned(): Promise<void> {
    const { backend, log } = this.#dependencies;
    const found = await backend.leases.abandoned(MAX_TAKEOVERS);
    // Runs takeovers at once, because each may wait for its client. Logs a failed takeover, so that other sessions do not fail
    // with it.
    const takeOver = async (record: SessionRecord) =>
      this.#found(record).catch((error: unknown) =>
        log.warn("a session was not taken over", { sessionId: record.id, error: String(error) }),
      );
    await Promise.all(found.map(takeOver));
  }

  /** Takes over a session of a dead server, or one whose turn waits for a node such as this. */
  async #found(record: SessionRecord): Promise<void> {
    if (waitsForNode(record.state)) await this.#dependencies.ownership.claim(record);
    else await this.recovered(record);
  }

  /** Also ends processes that no session has recorded. */
  async #endLeftovers(): Promise<void> {
    const processes = await this.#dependencies.runtime.endAllLeftovers();
    if (processes > 0) this.#dependencies.log.warn("ended leftover processes of a dead server", { processes });
  }
}
