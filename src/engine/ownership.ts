import { NO_ANSWER, type Command, type CommandReply } from "../domain/command.ts";
import { AppError, sessionNotFound, type Refusal } from "../domain/error.ts";
import type { Reach } from "../domain/attendance.ts";
import { waitsForNode, type SessionState } from "../domain/session.ts";
import { SessionActor } from "./actor.ts";
import { unlessAborted } from "./clock.ts";
import type { ActorContext, ActorSession, TakeoverTerms } from "./actor-context.ts";
import { silentOwner } from "./placement.ts";
import { gateUnder, type Operator, policyAtOwner, type ServerTerms } from "./policy/operator.ts";
import { nothingRuns } from "./session/wait.ts";
import type { WhileUnattended } from "./policy/policy.ts";
import { LeaseRenewal } from "./lease-renewal.ts";
import { refuseUnclaimable, whyGone } from "./shim-relation.ts";
import {
  isLoss,
  NoAnswerError,
  StoreTroubleError,
  type Lease,
  type SessionRecord,
  type ShimRelation,
} from "./ports.ts";

/** Time limit of a command to another node's session, and of a single attempt, ms. */
const COMMAND_MS = 15_000;
const SEND_MS = 3_000;
/** Time for clients of a dead daemon to connect to the next, ms; usually a second or two. */
const RECONNECT_MS = 10_000;
/** Interval at which `waitUntilQuiet` looks for running turns, ms. */
const QUIET_LOOK_MS = 100;

export interface OwnershipOptions extends ActorContext, Operator, ServerTerms {
  /** Set if this server goes on without clients. */
  readonly unattended?: (WhileUnattended & ReachSource) | undefined;
}

interface ReachSource {
  /** Returns the approvers reachable through connected clients that have named the session. */
  readonly reach: (sessionId: string) => Reach;
  /** Registers a listener for sessions with a changed `reach`. */
  readonly onReach: (listener: (sessionId: string) => void) => void;
}

/** Owns the sessions of this node, and sends commands to the owners of all others. */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #asTakenOver: (record: SessionRecord) => Promise<TakeoverTerms>;
  readonly #actors = new Map<string, SessionActor>();
  readonly #claims = new Map<string, Promise<SessionActor | undefined>>();
  /** Sessions that this node was running when their store was lost, with the reason. */
  readonly #lost = new Map<string, Refusal>();
  readonly #lease: LeaseRenewal;
  /** Leases of sessions that this node gave up when its own lease ended, to be released after its next renewal. */
  #givenUp: Lease[] = [];
  readonly #leaving = new AbortController();

  /** `asTakenOver` decides how this server continues a session without an owner. */
  constructor(options: OwnershipOptions, asTakenOver: (record: SessionRecord) => Promise<TakeoverTerms>) {
    this.#options = options;
    this.#asTakenOver = asTakenOver;
    this.#lease = new LeaseRenewal(options, {
      onRenewed: () => this.#onRenewed(),
      onFailed: (error) => this.#onFailed(error),
      onEnded: () => this.#giveAllUp(),
    });
    const { unattended } = options;
    unattended?.onReach((id) => this.#actors.get(id)?.notify({ type: "reach", reach: unattended.reach(id) }));
  }

  owns(sessionId: string): boolean {
    return this.#actors.has(sessionId);
  }

  /** Ids of the sessions of this node. */
  get owned(): string[] {
    return [...this.#actors.keys()];
  }

  /** Throws the reason if this node owns the session and cannot write its log at present. */
  refuseTrouble(sessionId: string): void {
    this.#actors.get(sessionId)?.refuseTrouble();
  }

  /** Throws like `refuseTrouble`, and also if this node was running the session when its store was lost. */
  refuseLost(sessionId: string): void {
    this.refuseTrouble(sessionId);
    const lost = this.#lost.get(sessionId);
    if (lost) throw new StoreTroubleError(lost, sessionId, true);
  }

  /** Resolves once the session's actor has handled everything posted so far. */
  async settled(sessionId: string): Promise<void> {
    await this.#actors.get(sessionId)?.settled();
  }

  /** Returns `undefined` if another server owns the session, or none does. */
  stateOf(sessionId: string): SessionState | undefined {
    return this.#actors.get(sessionId)?.state;
  }

  /** Notes that a client attends to the session. A no-op if this node does not own it. */
  attend(sessionId: string): void {
    this.#actors.get(sessionId)?.notify({ type: "attended" });
  }

  /** Returns the text being written in a session of this node, otherwise "". */
  partial(sessionId: string): string {
    return this.#actors.get(sessionId)?.partial ?? "";
  }

  /** Sends a command to the owner: this node's actor, another node's inbox, or this node after a claim. */
  async command(command: Command, record: SessionRecord): Promise<CommandReply> {
    if (this.#leaving.signal.aborted)
      throw new AppError("INTERNAL", "The server is shutting down. Try again in a moment.");
    const actor = this.#actors.get(record.id) ?? (await this.claim(record));
    const answered = actor && (await actor.command(command));
    // An actor that has just retired (`NO_ANSWER`) leaves the session to the next caller.
    return answered && answered !== NO_ANSWER ? answered : this.#send(command, record.id);
  }

  /** Sends a command once, to the present owner. A no-op if the session has no owner, or the owner does not answer. */
  async tell(command: Command, sessionId: string): Promise<void> {
    const actor = this.#actors.get(sessionId);
    if (actor) await actor.command(command);
    else await this.#sendOnce(command, sessionId);
  }

  /** Number of sessions of this node with work in progress, turns that wait at limits included. */
  get atWork(): number {
    return this.owned.filter((sessionId) => this.isBusy(sessionId)).length;
  }

  /** True if this node owns the session, and has work of the session in progress. */
  isBusy(sessionId: string): boolean {
    const state = this.stateOf(sessionId);
    return state !== undefined && (!nothingRuns(state) || state.background.length > 0);
  }

  /** Resolves once no turn runs in any session of this node, except those that wait at limits; or after `ms`. */
  async waitUntilQuiet(ms: number): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.tick() + ms;
    while (clock.tick() < deadline && [...this.#actors.values()].some(runsTurn)) {
      await new Promise<void>((resolve) => clock.after(QUIET_LOOK_MS, resolve));
    }
  }

  /** Records running work as interrupted and gives all sessions up. */
  async drain(): Promise<void> {
    this.#leaving.abort();
    this.#lease.stop();
    await Promise.allSettled(this.#claims.values());
    await Promise.all([...this.#actors.values()].map(async (actor) => actor.shutdown()));
  }

  announce(): void {
    this.ensureLease().catch((error: unknown) => {
      this.#options.log.warn("this server is not announced to the store yet", { error: String(error) });
    });
  }

  async ensureLease(): Promise<void> {
    await this.#lease.ensure();
  }

  async #send(command: Command, sessionId: string): Promise<CommandReply> {
    const deadline = this.#options.clock.tick() + COMMAND_MS;
    for (;;) {
      const reply = await this.#sendOnce(command, sessionId);
      if (reply) return reply;
      // The owner may have died, or given the session up, before reading the command.
      const record = await this.#options.backend.rows.get(sessionId);
      if (!record) throw sessionNotFound(sessionId);
      const actor = await this.claim(record);
      if (actor) return actor.command(command);
      if (this.#options.clock.tick() >= deadline) throw silentOwner(sessionId, this.#options.backend.machines);
    }
  }

  /** Returns `undefined` if no answer came in time. The command is withdrawn and may be sent again under its id. */
  async #sendOnce(command: Command, sessionId: string): Promise<CommandReply | undefined> {
    try {
      return await this.#options.backend.inbox.send(sessionId, command, SEND_MS);
    } catch (error) {
      if (error instanceof NoAnswerError) return undefined;
      throw error;
    }
  }

  /** Returns `undefined` if another server owns the session or this server is stopping. Concurrent claims share one attempt. */
  async claim(record: SessionRecord): Promise<SessionActor | undefined> {
    const running = this.#claims.get(record.id);
    if (running) return running;
    const claim = this.#tryClaim(record).finally(() => this.#claims.delete(record.id));
    this.#claims.set(record.id, claim);
    return claim;
  }

  async #tryClaim(record: SessionRecord): Promise<SessionActor | undefined> {
    const { backend, log, placement, runtime } = this.#options;
    // A claim would take the session even from this node's own actor, after its lease has lapsed during sleep of the machine.
    const own = this.#actors.get(record.id);
    if (own) return own;
    const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
    if (isForeign || this.#leaving.signal.aborted) return undefined;
    await refuseUnclaimable(record, runtime);
    if (await placement.passesOn(record)) return undefined;
    await this.ensureLease();
    const lease = await backend.leases.claim(record.id);
    const current = lease && (await backend.rows.get(record.id));
    if (!lease || !current) return undefined;
    // Checks again: between the two reads another daemon may have run the session, and died as well.
    const shim = await refuseUnclaimable(current, runtime).catch(async (error: unknown) => {
      await backend.leases.release(lease);
      throw error;
    });
    if (lease.tookOver) log.warn("took over a session of a server that died", { sessionId: record.id });
    if (shim === "ours") return this.#own(lease, current, { type: "attached" });
    return this.#takeOver(lease, current, shim);
  }

  async #takeOver(lease: Lease, current: SessionRecord, shim: ShimRelation): Promise<SessionActor | undefined> {
    const { backend, placement, runtime } = this.#options;
    const why = shim === "gone" ? await whyGone(current, runtime) : undefined;
    const isAway = (await placement.whyAway(current.place)) !== undefined;
    // Waits on for its node, unless the command to come ends the wait.
    if (isAway && waitsForNode(current.state)) return this.#own(lease, current, undefined);
    // `asTakenOver` may wait for a client of the session. If this server ends meanwhile, the session is left to the next
    // server.
    const terms = isAway ? Promise.resolve({ record: current, mayStart: false }) : this.#asTakenOver(current);
    const takenOver = await unlessAborted<TakeoverTerms>(terms, this.#leaving.signal);
    if (!takenOver) {
      await backend.leases.release(lease);
      return undefined;
    }
    const { record: taken, ...how } = takenOver;
    const whole = [why, how.why].filter((each) => each !== undefined).join(" ");
    return this.#own(lease, taken, { type: "recovered", ...how, ...(whole !== "" && { why: whole }) });
  }

  #own(lease: Lease, record: SessionRecord, takenOver: ActorSession["takenOver"]): SessionActor | undefined {
    if (!this.#lease.isHeld) {
      this.#givenUp.push(lease);
      return undefined;
    }
    const { clock, unattended } = this.#options;
    const { sessionId } = lease;
    const { place, principal, spec } = record;
    const isAttached = takenOver?.type === "attached";
    // After an attach, keeps the recorded `reach` for `RECONNECT_MS`, because clients of the dead daemon may still reconnect.
    const state = { ...record.state, ...(unattended && !isAttached && { reach: unattended.reach(sessionId) }) };
    const policy = policyAtOwner(this.#options, record, unattended);
    const gate = gateUnder(this.#options, record);
    const session = { lease, principal, spec, place, state, takenOver, policy, gate };
    const context = { ...this.#options, backend: this.#lease.guard(this.#options.backend) };
    const actor = new SessionActor(context, session, (lost) => this.#onGone(sessionId, lost));
    this.#actors.set(sessionId, actor);
    this.#lost.delete(sessionId);
    if (unattended && isAttached) {
      clock.after(RECONNECT_MS, () => actor.notify({ type: "reach", reach: unattended.reach(sessionId) }));
    }
    return actor;
  }

  #onGone(sessionId: string, lost: Refusal | undefined): void {
    this.#actors.delete(sessionId);
    if (lost) this.#lost.set(sessionId, lost);
  }

  /** Corrects shown times after a change of the clock, and lets a node that is being drained end idle processes. */
  async #tickAll(): Promise<void> {
    const isDrained = await this.#options.placement.isDrained().catch(() => false);
    for (const actor of this.#actors.values())
      if (isDrained || actor.state.requests.length > 0) actor.notify({ type: "tick" });
  }

  #onRenewed(): void {
    const { backend, log } = this.#options;
    for (const lease of this.#givenUp.splice(0))
      backend.leases.release(lease).catch((error: unknown) => {
        this.#givenUp.push(lease);
        log.warn("a session was not released", { sessionId: lease.sessionId, error: String(error) });
      });
    void this.#tickAll();
  }

  /** After a loss, the store may not record what runs, so each actor stops its session before reporting more. */
  #onFailed(error: unknown): void {
    if (isLoss(error)) for (const actor of this.#actors.values()) actor.fail(error);
  }

  #giveAllUp(): void {
    for (const actor of this.#actors.values()) this.#givenUp.push(actor.abandon());
  }
}

function runsTurn({ state: { turn, waiting } }: SessionActor): boolean {
  return turn !== null && waiting === undefined;
}
