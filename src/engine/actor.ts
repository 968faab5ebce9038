import { changedInputOf, NO_ANSWER, NO_ENVIRONMENT, type Command, type CommandReply } from "../domain/command.ts";
import type { Refusal } from "../domain/error.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { isAtWork, type SessionState } from "../domain/session.ts";
import type { ActorContext, ActorSession } from "./actor-context.ts";
import { EffectRunner } from "./effects.ts";
import { cannotBeWritten, messageOf } from "./ports/store.ts";
import { refusalAtOwner } from "./session/check-prompt.ts";
import { FencedError, isLoss, StoreTroubleError } from "./ports.ts";
import { nextDeadline, stepAll, type Arrival, type Happening, type Step } from "./step.ts";
import { showsTheSame } from "./step/time.ts";

const STORE_RETRY_MS = 1000;
/** Lines that tell nothing are stored in steps of this number, as Claude Code streams text by the word. */
const LINES_BEHIND = 500;

/**
 * The owner of one session. Inputs wait in a mailbox; each batch is stepped, stored in one transaction, and only then
 * acted upon: what the world sees of a session is in its log already.
 */
export class SessionActor {
  readonly #context: ActorContext;
  readonly #session: ActorSession;
  readonly #onGone: (lost: Refusal | undefined) => void;
  readonly #runner: EffectRunner;
  readonly #replies = new Map<string, (reply: CommandReply) => void>();
  readonly #inbox = new AbortController();
  #mailbox: Arrival[] = [];
  #state: SessionState;
  /** The highest line of the process that a next owner would not be told again. */
  #storedLine: number;
  /** By process: the lines that the state knows, which are acknowledged once it is stored. */
  readonly #lines = new Map<string, number>();
  /** Time up to which the state counts time awake. Time before this owner does not count. */
  #counted: number;
  #cancelTimer: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #endPause: (() => void) | undefined;
  #leaving = false;
  #gone = false;
  /** Why the log cannot be written at present. */
  #trouble: Refusal | undefined;
  /** What the log held may be missing. */
  #isLost = false;

  /** `onGone` is called once, when this actor no longer owns its session; with the reason where that was the store. */
  constructor(context: ActorContext, session: ActorSession, onGone: (lost: Refusal | undefined) => void) {
    this.#context = context;
    this.#session = session;
    this.#state = session.state;
    this.#counted = context.clock.tick();
    this.#onGone = onGone;
    const post = (happening: Happening) => this.#post(happening);
    this.#runner = new EffectRunner({ ...context, ...session, ...session.lease, post });
    void this.#readInbox();
    this.#storedLine = lineOf(session.state);
    // Only this owner has a process of the session: a recorded one was left by a former owner.
    if (isAtWork(session.state)) this.#post(session.takenOver);
    else this.#setTimer();
  }

  async command(command: Command): Promise<CommandReply> {
    const changed = changedInputOf(command);
    // Asks the file system and Claude Code. An answer that arrives meanwhile counts first.
    const judgement = changed && (await this.#runner.judge(changed.requestId, changed.input));
    if (this.#gone || this.#leaving) return NO_ANSWER;
    if (this.#trouble) return { ok: false, refusal: this.#trouble };
    const refusal = refusalAtOwner(command, { ...this.#context, session: this.#session, state: this.#state });
    if (refusal === NO_ENVIRONMENT && !isAtWork(this.#state)) void this.#release();
    if (refusal) return refusal;
    return new Promise((resolve) => {
      this.#replies.set(command.id, resolve);
      const isMasked = changed && this.#isMasked(changed.input);
      this.#post({ type: "command", command, ...(judgement && { judgement }), ...(isMasked && { isMasked }) });
    });
  }

  /** Whether the log holds something else, because there are secrets in it. */
  #isMasked(input: JsonObject): boolean {
    const event: SessionEvent = { type: "message", data: { message: input } };
    return JSON.stringify(this.#context.mask(event, this.#session.lease.sessionId)) !== JSON.stringify(event);
  }

  /** Resolves when what has arrived so far is stored and done. */
  async settled(): Promise<void> {
    await this.#draining;
  }

  /** Throws why the session's log cannot be written at present, for those who would read it. */
  refuseTrouble(): void {
    const { sessionId } = this.#session.lease;
    if (this.#trouble) throw new StoreTroubleError(this.#trouble, sessionId, this.#isLost);
  }

  /** Of the clients of this server, or of its clock: what the state says of times of day is put right after that was set. */
  hear(news: Extract<Happening, { type: "attended" | "reach" | "tick" }>): void {
    this.#post(news);
  }

  get state(): SessionState {
    return this.#state;
  }

  /** What Claude Code is writing just now. */
  get partial(): string {
    return this.#runner.partial;
  }

  /** Records that what runs was interrupted, gives the session up, and stops its process behind that. */
  async shutdown(): Promise<void> {
    if (this.#gone) return;
    this.#post({ type: "shutdown" });
    this.#leaving = true;
    this.#endPause?.();
    await this.#draining;
    await this.#release();
  }

  async #release(): Promise<void> {
    this.#leave();
    await this.#context.backend.leases.release(this.#session.lease).catch((error: unknown) => this.#warn(error));
  }

  #post(happening: Happening): void {
    if (this.#gone) return this.#runner.drop(happening);
    this.#mailbox.push({ ...happening, at: this.#context.clock.now(), tick: this.#context.clock.tick() });
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    // Whatever else arrives in this turn of the event loop shares one transaction.
    await Promise.resolve();
    while (this.#mailbox.length > 0 && !this.#gone) {
      const batch = this.#mailbox;
      this.#mailbox = [];
      await this.#take(batch);
    }
    this.#draining = undefined;
    if (this.#gone) return;
    // A session in which nothing runs needs no owner: the node that gets its next command claims it.
    if (isAtWork(this.#state)) this.#setTimer();
    else void this.#release();
  }

  async #take(batch: readonly Arrival[]): Promise<void> {
    const firstId = this.#state.lastEventId + 1;
    for (const each of batch) {
      if (each.type === "signal" && each.line !== undefined) this.#lines.set(each.processId, each.line);
    }
    let taken: Step;
    try {
      taken = this.#stepped(batch);
      // A step that brought about nothing (a sign of life) is kept in memory until the next one that did.
      while (!(await this.#store(taken))) {
        // What was refused must not be done later on.
        taken = this.#stepped(batch.filter(({ type }) => type !== "command"));
        await this.#pause(STORE_RETRY_MS);
      }
    } catch (error) {
      return this.#giveUp(error);
    }
    this.#state = taken.state;
    this.#counted = batch.at(-1)?.tick ?? this.#counted;
    for (const effect of taken.effects) {
      if (effect.type === "reply") {
        this.#reply(effect.commandId, effect.reply);
        continue;
      }
      await this.#runner.perform(effect, taken.state, { firstId, events: taken.events }).catch((error: unknown) => {
        this.#warn(error);
        this.#runner.fail(error, taken.state);
      });
    }
  }

  #stepped(batch: readonly Arrival[]): Step {
    return stepAll(this.#state, batch, { counted: this.#counted, policy: this.#session.policy });
  }

  /**
   * Work that cannot be recorded must stop: Claude Code is stopped, commands are refused, and the write is retried until the
   * store accepts it. Until then every reader of the session gets the reason as an error.
   */
  async #store({ effects, events, state }: Step): Promise<boolean> {
    const tellsNothing = events.length === 0 && effects.length === 0 && showsTheSame(this.#state, state);
    if (tellsNothing && lineOf(state) - this.#storedLine < LINES_BEHIND) return true;
    try {
      const { backend, clock, mask } = this.#context;
      const masked = events.map((event) => mask(event, this.#session.lease.sessionId));
      const acted = effects.some(({ type }) => type !== "reply");
      await backend.log.append(this.#session.lease, { events: masked, at: clock.now(), state, acted });
      this.#storedLine = lineOf(state);
      this.#trouble = undefined;
      this.#isLost = false;
      this.#runner.acknowledge(this.#lines);
      this.#lines.clear();
      return true;
    } catch (error) {
      if (error instanceof FencedError || this.#leaving) throw error;
      this.fail(error);
      return false;
    }
  }

  /** The store lost data: the session stops, and every later call gets the reason as an error. */
  fail(error: unknown): void {
    if (this.#gone) return;
    if (!this.#trouble) this.#warn(error);
    this.#trouble = cannotBeWritten(error);
    if (isLoss(error) && !this.#isLost) this.#noteLoss(this.#trouble.message);
    this.#runner.kill();
    for (const id of this.#replies.keys()) this.#reply(id, { ok: false, refusal: this.#trouble });
  }

  /** For the log, should there be one again that takes it. */
  #noteLoss(message: string): void {
    this.#isLost = true;
    const { process } = this.#state;
    if (process.phase === "none") return;
    this.#post({ type: "signal", processId: process.id, signal: { type: "notice", kind: "warning", message } });
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#context.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
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

  async #readInbox(): Promise<void> {
    if (this.#gone) return;
    try {
      for await (const item of this.#context.backend.inbox.receive(this.#session.lease, this.#inbox.signal)) {
        // Not awaited: a second command may be what ends the first one's wait.
        void this.command(item.command)
          // Without an answer its sender takes the session as soon as it is free.
          .then(async (reply) => (reply === NO_ENVIRONMENT ? undefined : item.ack(reply)))
          .catch((error: unknown) => this.#warn(error));
      }
    } catch (error) {
      this.#warn(error);
      // Without its inbox the session would answer no other server.
      this.#context.clock.after(STORE_RETRY_MS, () => void this.#readInbox());
    }
  }

  /** The session is another's now, or its next state is unknown: the next owner, which may be this server, records that it was lost. */
  #giveUp(error: unknown): void {
    const isFenced = error instanceof FencedError;
    if (!isFenced) this.#warn(error);
    this.#runner[isFenced ? "letGo" : "kill"]();
    if (isFenced || this.#leaving) this.#leave();
    else void this.#release();
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
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

function lineOf({ process }: SessionState): number {
  return process.phase === "none" ? 0 : (process.line ?? 0);
}
