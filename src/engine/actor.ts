import { NO_ANSWER, type Command, type CommandReply } from "../domain/command.ts";
import type { Refusal } from "../domain/error.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import { isAtWork, type SessionState } from "../domain/session.ts";
import type { Admission } from "./admission.ts";
import type { Policy } from "./policy.ts";
import { Hands } from "./hands.ts";
import { FencedError, type AgentRuntime } from "./ports.ts";
import type { Clock, Lease, Logger, SessionBackend } from "./ports.ts";
import { nextDeadline, step, type Input, type Step } from "./step.ts";

const STORE_RETRY_MS = 1000;

export interface ActorContext {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly admission: Pick<Admission, "enter" | "hasRoom">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes secrets out of an event before it is stored; what is acted upon is the event as it came. */
  readonly mask: (event: SessionEvent) => SessionEvent;
}

export interface ActorSession {
  readonly lease: Lease;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly state: SessionState;
  readonly policy: Policy;
}

/**
 * The owner of one session. Inputs wait in a mailbox; each batch is stepped, stored in one transaction, and only then
 * acted upon: what the world sees of a session is in its log already.
 */
export class SessionActor {
  readonly #context: ActorContext;
  readonly #session: ActorSession;
  readonly #onGone: () => void;
  readonly #hands: Hands;
  readonly #replies = new Map<string, (reply: CommandReply) => void>();
  readonly #inbox = new AbortController();
  #mailbox: Input[] = [];
  #state: SessionState;
  #cancelTimer: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #endPause: (() => void) | undefined;
  #leaving = false;
  #gone = false;
  /** Why the log cannot be written at present. */
  #trouble: Refusal | undefined;

  /** `onGone` is called once, when this actor no longer owns its session. */
  constructor(context: ActorContext, session: ActorSession, onGone: () => void) {
    this.#context = context;
    this.#session = session;
    this.#state = session.state;
    this.#onGone = onGone;
    const { admission, backend, runtime } = context;
    const { lease, principal, spec } = session;
    const post = (input: Input) => this.#post(input);
    const { sessionId } = lease;
    this.#hands = new Hands({ sessionId, principal, spec, backend, runtime, admission, post, now: () => this.#now() });
    void this.#readInbox();
    // Nobody but us has a process of this session: one that is recorded was left by a former owner.
    if (isAtWork(session.state)) this.#post({ type: "recovered", at: context.clock.now() });
    else this.#setTimer();
  }

  async command(command: Command): Promise<CommandReply> {
    if (this.#gone || this.#leaving) return NO_ANSWER;
    if (this.#trouble) return { ok: false, refusal: this.#trouble };
    return new Promise((resolve) => {
      this.#replies.set(command.id, resolve);
      this.#post({ type: "command", at: this.#now(), command });
    });
  }

  /** Resolves when what has arrived so far is stored and done. */
  async settled(): Promise<void> {
    await this.#draining;
  }

  /** Why the session's log cannot be written at present, for those who would read it. */
  get trouble(): Refusal | undefined {
    return this.#trouble;
  }

  get runsTurn(): boolean {
    return this.#state.turn !== null;
  }

  /** What Claude Code is writing just now. */
  get partial(): string {
    return this.#hands.partial;
  }

  /** Records that what runs was interrupted, gives the session up, and stops its process behind that. */
  async shutdown(): Promise<void> {
    if (this.#gone) return;
    this.#post({ type: "shutdown", at: this.#now() });
    this.#leaving = true;
    this.#endPause?.();
    await this.#draining;
    await this.#release();
  }

  async #release(): Promise<void> {
    this.#leave();
    await this.#context.backend.release(this.#session.lease).catch((error: unknown) => this.#warn(error));
  }

  #now(): number {
    return this.#context.clock.now();
  }

  #post(input: Input): void {
    if (this.#gone) return;
    this.#mailbox.push(input);
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
    // A session in which nothing runs needs no owner: whoever gets its next command claims it.
    if (isAtWork(this.#state)) this.#setTimer();
    else void this.#release();
  }

  async #take(batch: readonly Input[]): Promise<void> {
    const firstId = this.#state.lastEventId + 1;
    let taken = this.#step(batch);
    try {
      // A step that brought about nothing (a sign of life) is kept in memory until the next one that did.
      while (!(await this.#store(taken))) {
        // What was refused must not be done later on.
        taken = this.#step(batch.filter(({ type }) => type !== "command"));
        await this.#pause(STORE_RETRY_MS);
      }
    } catch (error) {
      return this.#giveUp(error);
    }
    this.#state = taken.state;
    for (const effect of taken.effects) {
      if (effect.type === "reply") {
        this.#reply(effect.commandId, effect.reply);
        continue;
      }
      await this.#hands.perform(effect, taken.state, { firstId, events: taken.events }).catch((error: unknown) => {
        // A turn whose prompt cannot be handed over must not wait for ever: without its process it is lost, and told so.
        this.#warn(error);
        this.#hands.kill();
      });
    }
  }

  #step(batch: readonly Input[]): Step {
    const taken: Step = { state: this.#state, events: [], effects: [] };
    for (const input of batch) {
      const next = step(taken.state, input, this.#session.policy);
      taken.state = next.state;
      taken.events.push(...next.events);
      taken.effects.push(...next.effects);
    }
    return taken;
  }

  /**
   * What cannot be recorded must not go on: Claude Code is stopped, commands are refused, and the store is tried again
   * until it takes what has happened so far. Until then whoever asks for the session is told why it cannot be trusted.
   */
  async #store({ effects, events, state }: Step): Promise<boolean> {
    if (events.length === 0 && effects.length === 0) return true;
    try {
      const masked = events.map((event) => this.#context.mask(event));
      const acted = effects.some(({ type }) => type !== "reply");
      await this.#context.backend.append(this.#session.lease, { events: masked, at: this.#now(), state, acted });
      this.#trouble = undefined;
      return true;
    } catch (error) {
      if (error instanceof FencedError || this.#leaving) throw error;
      if (!this.#trouble) this.#warn(error);
      this.#trouble = cannotBeWritten(messageOf(error));
      this.#hands.kill();
      for (const id of this.#replies.keys()) this.#reply(id, { ok: false, refusal: this.#trouble });
      return false;
    }
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#context.clock.at(this.#now() + ms, resolve);
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
    this.#cancelTimer =
      due === undefined ? undefined : this.#context.clock.at(due, () => this.#post({ type: "tick", at: this.#now() }));
  }

  async #readInbox(): Promise<void> {
    try {
      for await (const item of this.#context.backend.inbox(this.#session.lease, this.#inbox.signal)) {
        // Not awaited: a second command may be what ends the first one's wait.
        void this.command(item.command)
          .then(async (reply) => item.ack(reply))
          .catch((error: unknown) => this.#warn(error));
      }
    } catch (error) {
      this.#warn(error);
    }
  }

  /** The session is another's now, or its log cannot be written: what cannot be recorded must not go on. */
  #giveUp(error: unknown): void {
    if (!(error instanceof FencedError)) this.#warn(error);
    this.#hands.kill();
    this.#leave();
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#cancelTimer?.();
    this.#inbox.abort();
    for (const resolve of this.#replies.values()) resolve(NO_ANSWER);
    this.#replies.clear();
    this.#onGone();
  }

  #warn(error: unknown): void {
    const { sessionId } = this.#session.lease;
    this.#context.log.warn("session actor", { sessionId, error: messageOf(error) });
  }
}

function cannotBeWritten(why: string): Refusal {
  const reason = why.replace(/[.\s]*$/, ".");
  const message = `The session's log cannot be written: ${reason} Its turn was stopped; nothing that was told before is lost.`;
  return { code: "INTERNAL", message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
