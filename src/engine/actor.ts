import { changedInputOf, NO_ANSWER, type Command, type CommandReply } from "../domain/command.ts";
import type { Refusal } from "../domain/error.ts";
import { isAtWork, waitsForNode, type SessionState } from "../domain/session.ts";
import { isMasked, type ActorContext, type ActorSession } from "./actor-context.ts";
import { EffectRunner } from "./effects.ts";
import { logWriteRefusal, messageOf } from "./ports/store.ts";
import { readKnown, storeReports } from "./session/limits-reader.ts";
import { refusalAtOwner, refusalFromAfar } from "./session/check-prompt.ts";
import { StoreRetry } from "./store-retry.ts";
import { ConflictError, FencedError, isLoss, StoreTroubleError, type Lease } from "./ports.ts";
import { nextDeadline, stepAll, TRACELESS, type Arrival, type Happening, type Step } from "./step.ts";
import { lineOf, looksUnchanged } from "./step/time.ts";

/** Number of uneventful lines after which the state is stored, because Claude Code streams text by the word. */
const LINES_BEHIND = 500;

/**
 * Owns one session. Inputs wait in a mailbox; a batch is stepped, stored in one transaction, and only then acted upon, so that
 * every visible effect is in the log already.
 */
export class SessionActor {
  readonly #context: ActorContext;
  readonly #session: ActorSession;
  readonly #onGone: (lost: Refusal | undefined) => void;
  readonly #runner: EffectRunner;
  readonly #retry: StoreRetry;
  readonly #replies = new Map<string, (reply: CommandReply) => void>();
  readonly #inbox = new AbortController();
  #mailbox: Arrival[] = [];
  #state: SessionState;
  /** Highest stored line of the process. A next owner gets only later lines. */
  #storedLine: number;
  /** Lines covered by the state, by process id. Acknowledged once the state is stored. */
  readonly #lines = new Map<string, number>();
  /** Tick up to which the state counts time awake. Time before this owner does not count. */
  #counted: number;
  #cancelTimer: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #leaving = false;
  #gone = false;
  /** Reason why the log cannot be written at present. */
  #trouble: Refusal | undefined;
  /** Set after the store has reported a loss: the log may lack stored events. */
  #isLost = false;

  /** `onGone` is called once, after this actor has given up its session; with the reason if the store lost data. */
  constructor(context: ActorContext, session: ActorSession, onGone: (lost: Refusal | undefined) => void) {
    this.#context = context;
    this.#session = session;
    this.#state = session.state;
    this.#counted = context.clock.tick();
    this.#onGone = onGone;
    const post = (happening: Happening) => this.#post(happening);
    this.#retry = new StoreRetry(context, (error) => this.#warn(error));
    const reading = { ...context, backend: this.#retry.withReads() };
    this.#runner = new EffectRunner({ ...reading, ...session, ...session.lease, post });
    void this.#retry.receive(session.lease, this.#inbox.signal, async (command) => this.command(command));
    this.#storedLine = lineOf(session.state);
    // A recorded process was left by a former owner, because this owner has started none yet.
    if (session.takenOver && isAtWork(session.state)) this.#post(session.takenOver);
    else this.#setTimer();
  }

  async command(command: Command): Promise<CommandReply> {
    const changed = changedInputOf(command);
    // Reads the file system and asks Claude Code. An answer that arrives meanwhile counts first.
    const judgement = changed && (await this.#runner.judge(changed.requestId, changed.input));
    const unable = (await refusalFromAfar(this.#context, this.#session, command)) ?? this.#trouble;
    if (this.#gone || this.#leaving) return NO_ANSWER;
    const place = { ...this.#context, session: this.#session, state: this.#state };
    const refused = unable ? ({ ok: false, refusal: unable } as const) : refusalAtOwner(command, place);
    if (refused) {
      if (!this.#draining) void this.#retire();
      return refused;
    }
    return new Promise((resolve) => {
      this.#replies.set(command.id, resolve);
      const masked = changed && isMasked(this.#context, this.#session.lease.sessionId, changed.input);
      this.#post({ type: "command", command, ...(judgement && { judgement }), ...(masked && { isMasked: masked }) });
    });
  }

  /** Resolves once everything that has arrived so far is stored and done, a look at the end of a turn included. */
  async settled(): Promise<void> {
    await this.#draining;
    await this.#runner.evidence.looked;
    await this.#draining;
  }

  /** Throws the reason why the log cannot be written at present, for readers of the session. */
  refuseTrouble(): void {
    const { sessionId } = this.#session.lease;
    if (this.#trouble) throw new StoreTroubleError(this.#trouble, sessionId, this.#isLost);
  }

  /** Handles changes of clients and of the clock. After a clock change, `tick` corrects displayed times. */
  notify(news: Extract<Happening, { type: "attended" | "reach" | "tick" }>): void {
    this.#post(news);
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Text that Claude Code is writing at the moment. */
  get partial(): string {
    return this.#runner.partial;
  }

  /** Records running work as interrupted, stops the process without waiting for its exit, and releases the session. */
  async shutdown(): Promise<void> {
    if (this.#gone) return;
    this.#post({ type: "shutdown" });
    this.#leaving = true;
    this.#retry.end();
    await this.#draining;
    await this.#runner.transcripts.finishAfterExit();
    await this.#release();
  }

  /** Gives the session up once its conversation is stored, unless work has come by then. */
  async #retire(): Promise<void> {
    if (this.#runner.transcripts.isUnsaved) await this.#runner.transcripts.finish();
    if (!this.#draining && !this.#isAtWork) await this.#release();
  }

  get #isAtWork(): boolean {
    return isAtWork(this.#state) && !waitsForNode(this.#state);
  }

  /** Kills the process and gives the session up without writing, because its lease has ended. Returns the lease to release. */
  abandon(): Lease {
    this.#runner.kill();
    this.#leave();
    return this.#session.lease;
  }

  async #release(): Promise<void> {
    if (this.#gone) return;
    this.#leave();
    await this.#retry.answered();
    const { placement } = this.#context;
    await placement.release(this.#session.lease, this.#state).catch((error: unknown) => this.#warn(error));
  }

  #post(happening: Happening): void {
    if (this.#gone) return this.#runner.drop(happening);
    this.#mailbox.push({ ...happening, at: this.#context.clock.now(), tick: this.#context.clock.tick() });
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    // Batches all inputs of this event-loop turn into one transaction.
    await Promise.resolve();
    while (this.#mailbox.length > 0 && !this.#gone) {
      const batch = this.#mailbox;
      this.#mailbox = [];
      await this.#take(batch);
    }
    this.#draining = undefined;
    if (this.#gone) return;
    // A session without work here needs no owner: the node that gets its next command claims it.
    if (this.#isAtWork) this.#setTimer();
    else void this.#retire();
  }

  async #take(batch: readonly Arrival[]): Promise<void> {
    const firstId = this.#state.lastEventId + 1;
    for (const each of batch) {
      if (each.type === "signal" && each.line !== undefined) this.#lines.set(each.processId, each.line);
    }
    let taken: Step;
    try {
      await this.#retry.throughOutages(async () => storeReports(this.#context, batch));
      taken = await this.#stepped(batch);
      // Keeps a step without news (a sign of life) in memory until the next step with news.
      while (!(await this.#store(taken))) {
        if (this.#gone) return;
        // Drops commands after a failure, because a refused command must not be carried out later.
        const isRefused = this.#trouble !== undefined;
        taken = await this.#stepped(isRefused ? batch.filter(({ type }) => type !== "command") : batch);
        if (isRefused) await this.#retry.pause();
      }
    } catch (error) {
      return this.#giveUp(error);
    }
    if (this.#gone) return;
    this.#state = taken.state;
    this.#counted = batch.at(-1)?.tick ?? this.#counted;
    for (const effect of taken.effects) {
      if (effect.type === "reply") this.#reply(effect.commandId, effect.reply);
      else
        await this.#runner.perform(effect, taken.state, { firstId, events: taken.events }).catch((error: unknown) => {
          this.#warn(error);
          this.#runner.fail(error, taken.state);
        });
    }
    this.#runner.transcripts.note(taken.state, taken.events);
  }

  async #stepped(batch: readonly Arrival[]): Promise<Step> {
    const known = await this.#retry.throughOutages(async () =>
      readKnown(this.#context, this.#session, this.#state, batch),
    );
    return stepAll(this.#state, batch, { counted: this.#counted, known, policy: this.#session.policy });
  }

  /**
   * Stores a step. If the write fails, returns false, stops Claude Code and refuses commands, because work that cannot be
   * recorded must stop. The caller retries; until the store accepts the write, every reader of the session gets the reason as
   * an error. Also returns false if the ledger has changed since the step has read it, and the caller steps again.
   */
  async #store({ effects, events, ledger, state }: Step): Promise<boolean> {
    const tellsNothing = events.length === 0 && effects.length === 0 && looksUnchanged(this.#state, state);
    if (tellsNothing && lineOf(state) - this.#storedLine < LINES_BEHIND) return true;
    try {
      const { backend, clock, mask } = this.#context;
      const masked = events.map((event) => mask(event, this.#session.lease.sessionId));
      const acted = effects.some(({ type }) => !TRACELESS.has(type));
      const change = { events: masked, at: clock.now(), state, acted, ledger };
      await this.#retry.throughOutages(async () => backend.log.append(this.#session.lease, change));
      this.#storedLine = lineOf(state);
      this.#trouble = undefined;
      this.#isLost = false;
      this.#runner.acknowledge(this.#lines);
      this.#lines.clear();
      return true;
    } catch (error) {
      if (error instanceof ConflictError) return false;
      if (error instanceof FencedError || this.#leaving) throw error;
      this.fail(error);
      return false;
    }
  }

  /** Stops the session after a failed write or a loss of data. Every later call gets the reason as an error. */
  fail(error: unknown): void {
    if (this.#gone) return;
    if (!this.#trouble) this.#warn(error);
    this.#trouble = logWriteRefusal(error);
    if (isLoss(error) && !this.#isLost) this.#noteLoss(this.#trouble.message);
    this.#runner.kill();
    for (const id of this.#replies.keys()) this.#reply(id, { ok: false, refusal: this.#trouble });
  }

  /** Posts a notice for the log, should the log become writable again. */
  #noteLoss(message: string): void {
    this.#isLost = true;
    const { process } = this.#state;
    if (process.phase === "none") return;
    this.#post({ type: "signal", processId: process.id, signal: { type: "notice", kind: "warning", message } });
  }

  #reply(commandId: string, reply: CommandReply): void {
    this.#replies.get(commandId)?.(reply);
    this.#replies.delete(commandId);
  }

  #setTimer(): void {
    this.#cancelTimer?.();
    const due = nextDeadline(this.#state, this.#session.policy);
    const onDue = () => this.#post({ type: "tick" });
    this.#cancelTimer = due === undefined ? undefined : this.#context.clock.after(due, onDue, { isLimit: true });
  }

  /**
   * Gives the session up, because another server owns it or its next state is unknown. The next owner, possibly this server,
   * records running work as lost.
   */
  #giveUp(error: unknown): void {
    if (this.#gone) return;
    const isFenced = error instanceof FencedError;
    if (!isFenced) this.#warn(error);
    this.#runner[isFenced ? "letGo" : "kill"]();
    if (isFenced || this.#leaving) this.#leave();
    else void this.#release();
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#retry.end();
    this.#runner.leave();
    this.#cancelTimer?.();
    this.#inbox.abort();
    for (const resolve of this.#replies.values()) resolve(NO_ANSWER);
    this.#replies.clear();
    this.#onGone(this.#isLost ? this.#trouble : undefined);
  }

  #warn(error: unknown): void {
    const { sessionId } = this.#session.lease;
    this.#context.log.warn("session actor", { sessionId, error: messageOf(error) });
  }
}
