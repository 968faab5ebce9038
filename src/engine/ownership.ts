import { NO_ANSWER, type Command, type CommandReply } from "../domain/command.ts";
import { AppError, sessionNotFound, type Refusal } from "../domain/error.ts";
import type { Reach } from "../domain/attendance.ts";
import type { SessionState } from "../domain/session.ts";
import { SessionActor } from "./actor.ts";
import type { ActorContext, ActorSession } from "./actor-context.ts";
import { gateUnder, type Operator, policyAtOwner } from "./policy/operator.ts";
import { nothingRuns } from "./session/wait.ts";
import type { WhileUnattended } from "./policy/policy.ts";
import { refuseUnclaimable, whyGone } from "./shim-standing.ts";
import { isLoss, NoAnswerError, StoreTroubleError, type Lease, type SessionRecord } from "./ports.ts";

/** Length of a lease, ms. A node that does not renew it in time loses its sessions. */
const LEASE_MS = 30_000;
/** A clock that was set can make a lease look expired: it is watched for a third of its length first. ms */
const RENEW_MS = LEASE_MS / 6;
/** A renewal that failed is tried again well before the lease runs out, ms. */
const RENEW_AGAIN_MS = 2_000;
/** How long a command to another node's session is tried, and a single try of it, ms. */
const COMMAND_MS = 15_000;
const SEND_MS = 3_000;
/** Clients of a daemon that died connect to the next one within a second or two. */
const RECONNECT_MS = 10_000;
/** Interval of looks for the end of the last turn while a server stops. */
const QUIET_LOOK_MS = 100;

export interface OwnershipOptions extends ActorContext, Operator {
  /** Given where this server goes on without clients. */
  readonly unattended?: (WhileUnattended & Reachable) | undefined;
}

interface Reachable {
  /** Who can be reached of the clients that have named the session. */
  readonly reach: (sessionId: string) => Reach;
  /** Tells each session for which that has changed. */
  readonly onReach: (listener: (sessionId: string) => void) => void;
}

/** A session as this node goes on with it. */
export interface TakenOver {
  readonly record: SessionRecord;
  /** A turn whose process is not recorded may be started here. */
  readonly mayStart: boolean;
  /** With this environment record. */
  readonly environmentId?: string;
  /** Why it may not, in a sentence for people. */
  readonly why?: string;
}

/** Which sessions this node owns, and the way to those that others do. */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #asTakenOver: (record: SessionRecord) => Promise<TakenOver>;
  readonly #actors = new Map<string, SessionActor>();
  readonly #claims = new Map<string, Promise<SessionActor | undefined>>();
  /** Sessions that this node was at work on when their store went away, and why. */
  readonly #lost = new Map<string, Refusal>();
  #lease: Promise<void> | undefined;
  #cancelHeartbeat: (() => void) | undefined;
  readonly #leaving = new AbortController();

  /** `asTakenOver` says how this server continues a session without an owner. */
  constructor(options: OwnershipOptions, asTakenOver: (record: SessionRecord) => Promise<TakenOver>) {
    this.#options = options;
    this.#asTakenOver = asTakenOver;
    const { unattended } = options;
    unattended?.onReach((id) => this.#actors.get(id)?.hear({ type: "reach", reach: unattended.reach(id) }));
  }

  owns(sessionId: string): boolean {
    return this.#actors.has(sessionId);
  }

  /** Ids of the sessions that it owns. */
  get owned(): string[] {
    return [...this.#actors.keys()];
  }

  /** Throws why the log of a session that this node owns cannot be written at present. */
  refuseTrouble(sessionId: string): void {
    this.#actors.get(sessionId)?.refuseTrouble();
  }

  /** The same where there is no such session any more: its store may have gone. */
  refuseLost(sessionId: string): void {
    this.refuseTrouble(sessionId);
    const lost = this.#lost.get(sessionId);
    if (lost) throw new StoreTroubleError(lost, sessionId, true);
  }

  /** Resolves when what this node has to do for the session so far is done. */
  async settled(sessionId: string): Promise<void> {
    await this.#actors.get(sessionId)?.settled();
  }

  /** Undefined where another server owns the session, or none does. */
  stateOf(sessionId: string): SessionState | undefined {
    return this.#actors.get(sessionId)?.state;
  }

  /** A client attends to the session, if this node owns it. */
  attend(sessionId: string): void {
    this.#actors.get(sessionId)?.hear({ type: "attended" });
  }

  /** What is being written in a session that this node owns. */
  partial(sessionId: string): string {
    return this.#actors.get(sessionId)?.partial ?? "";
  }

  /** Sends a command to the owner: this node's actor, another node's inbox, or this node after it has claimed a session without one. */
  async command(command: Command, record: SessionRecord): Promise<CommandReply> {
    if (this.#leaving.signal.aborted)
      throw new AppError("INTERNAL", "The server is shutting down. Try again in a moment.");
    const actor = this.#actors.get(record.id) ?? (await this.claim(record));
    const answered = actor && (await actor.command(command));
    // An actor that has just retired leaves the session to the next caller.
    return answered && answered !== NO_ANSWER ? answered : this.#send(command, record.id);
  }

  /** Sends to the owner as far as there is one that answers, and claims nothing. */
  async tell(command: Command, sessionId: string): Promise<void> {
    const actor = this.#actors.get(sessionId);
    if (actor) await actor.command(command);
    else await this.#sendOnce(command, sessionId);
  }

  /** The number of sessions of this node in which something goes on. */
  get atWork(): number {
    const isAtWork = ({ state }: SessionActor) => !nothingRuns(state) || state.background.length > 0;
    return [...this.#actors.values()].filter(isAtWork).length;
  }

  /** Resolves when no turn runs in any session of this node, or after `ms`. */
  async quiet(ms: number): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.tick() + ms;
    while (clock.tick() < deadline && [...this.#actors.values()].some((actor) => actor.state.turn)) {
      await new Promise<void>((resolve) => clock.after(QUIET_LOOK_MS, resolve));
    }
  }

  /** Records what runs as interrupted and gives all sessions up. */
  async drain(): Promise<void> {
    this.#leaving.abort();
    this.#cancelHeartbeat?.();
    await Promise.allSettled(this.#claims.values());
    await Promise.all([...this.#actors.values()].map(async (actor) => actor.shutdown()));
  }

  announce(): void {
    this.beAlive().catch((error: unknown) => {
      this.#options.log.warn("the store does not know of this server yet", { error: String(error) });
    });
  }

  /** The node's lease begins with the first session it has to do with: starting up takes none. */
  async beAlive(): Promise<void> {
    this.#lease ??= this.#heartbeat().catch((error: unknown) => {
      this.#lease = undefined;
      throw error;
    });
    await this.#lease;
  }

  async #send(command: Command, sessionId: string): Promise<CommandReply> {
    const deadline = this.#options.clock.tick() + COMMAND_MS;
    for (;;) {
      const reply = await this.#sendOnce(command, sessionId);
      if (reply) return reply;
      // The owner may have died, or given the session up, before it read the command.
      const record = await this.#options.backend.rows.get(sessionId);
      if (!record) throw sessionNotFound(sessionId);
      const actor = await this.claim(record);
      if (actor) return actor.command(command);
      if (this.#options.clock.tick() >= deadline) {
        throw new AppError("TIMEOUT", "The server that owns the session did not answer. Try again.", { sessionId });
      }
    }
  }

  /** Undefined if no answer came in time; the command is withdrawn and may be sent again under its id. */
  async #sendOnce(command: Command, sessionId: string): Promise<CommandReply | undefined> {
    try {
      return await this.#options.backend.inbox.send(sessionId, command, SEND_MS);
    } catch (error) {
      if (error instanceof NoAnswerError) return undefined;
      throw error;
    }
  }

  /** Undefined where another server owns it, or this one is on its way out. Two claims at once make one. */
  async claim(record: SessionRecord): Promise<SessionActor | undefined> {
    const running = this.#claims.get(record.id);
    if (running) return running;
    const claim = this.#tryClaim(record).finally(() => this.#claims.delete(record.id));
    this.#claims.set(record.id, claim);
    return claim;
  }

  async #tryClaim(record: SessionRecord): Promise<SessionActor | undefined> {
    const { backend, log, runtime } = this.#options;
    // A claim would take the session even from this node's own actor, whose lease may have lapsed while the machine slept.
    const own = this.#actors.get(record.id);
    if (own) return own;
    const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
    if (isForeign || this.#leaving.signal.aborted) return undefined;
    await refuseUnclaimable(record, runtime);
    await this.beAlive();
    const lease = await backend.leases.claim(record.id);
    const current = lease && (await backend.rows.get(record.id));
    if (!lease || !current) return undefined;
    // Between the two looks another daemon may have run it, and died as well.
    const shim = await refuseUnclaimable(current, runtime).catch(async (error: unknown) => {
      await backend.leases.release(lease);
      throw error;
    });
    if (lease.tookOver) log.warn("took over a session of a server that died", { sessionId: record.id });
    const why = shim === "gone" ? await whyGone(current, runtime) : undefined;
    if (shim === "ours") return this.#own(lease, current, { type: "attached" });
    // It may wait for a client of the session: the session is left to the next server if this one ends meanwhile.
    const takenOver = await Promise.race([this.#asTakenOver(current), once(this.#leaving.signal)]);
    if (!takenOver) {
      await backend.leases.release(lease);
      return undefined;
    }
    const { record: taken, ...how } = takenOver;
    const whole = [why, how.why].filter((each) => each !== undefined).join(" ");
    return this.#own(lease, taken, { type: "recovered", ...how, ...(whole !== "" && { why: whole }) });
  }

  #own(lease: Lease, record: SessionRecord, takenOver: ActorSession["takenOver"]): SessionActor {
    const { clock, unattended } = this.#options;
    const { sessionId } = lease;
    const { principal, spec } = record;
    const isAttachable = takenOver.type === "attached";
    // The clients of the dead owner count as there while they may be on their way.
    const state = { ...record.state, ...(unattended && !isAttachable && { reach: unattended.reach(sessionId) }) };
    const policy = policyAtOwner(this.#options, record, unattended);
    const gate = gateUnder(this.#options, record);
    const session = { lease, principal, spec, state, takenOver, policy, gate };
    const actor = new SessionActor(this.#options, session, (lost) => this.#onGone(sessionId, lost));
    this.#actors.set(sessionId, actor);
    this.#lost.delete(sessionId);
    if (unattended && isAttachable) {
      clock.after(RECONNECT_MS, () => actor.hear({ type: "reach", reach: unattended.reach(sessionId) }));
    }
    return actor;
  }

  #onGone(sessionId: string, lost: Refusal | undefined): void {
    this.#actors.delete(sessionId);
    if (lost) this.#lost.set(sessionId, lost);
  }

  async #heartbeat(): Promise<void> {
    await this.#options.backend.leases.heartbeat(LEASE_MS).catch((error: unknown) => {
      // What runs could no longer be found again: it is stopped before it says that more is done.
      if (isLoss(error)) for (const actor of this.#actors.values()) actor.fail(error);
      throw error;
    });
    this.#renewIn(RENEW_MS);
    for (const actor of this.#actors.values()) if (actor.state.requests.length > 0) actor.hear({ type: "tick" });
  }

  #renewIn(ms: number): void {
    const { clock, log } = this.#options;
    this.#cancelHeartbeat = clock.after(ms, () => {
      if (this.#leaving.signal.aborted) return;
      this.#heartbeat().catch((error: unknown) => {
        log.warn("lease not renewed", { error: String(error) });
        this.#renewIn(RENEW_AGAIN_MS);
      });
    });
  }
}

async function once(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return undefined;
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}
