import { NO_ANSWER, type Command, type CommandReply } from "../domain/command.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { SessionState } from "../domain/session.ts";
import type { Policy } from "./policy.ts";
import { FencedError, type AgentProcess, type AgentRuntime, type AgentSignal } from "./ports.ts";
import type { Clock, Lease, Logger, SessionBackend } from "./ports.ts";
import { nextDeadline, step, type Effect, type Input } from "./step.ts";

export interface ActorContext {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ActorSession {
  readonly lease: Lease;
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
  readonly #replies = new Map<string, (reply: CommandReply) => void>();
  readonly #inbox = new AbortController();
  #mailbox: Input[] = [];
  #state: SessionState;
  #process: { id: string; agent: AgentProcess } | undefined;
  #cancelTimer: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #gone = false;

  /** `onGone` is called once, when this actor no longer owns its session. */
  constructor(context: ActorContext, session: ActorSession, onGone: () => void) {
    this.#context = context;
    this.#session = session;
    this.#state = session.state;
    this.#onGone = onGone;
    void this.#readInbox();
    if (session.lease.tookOver) this.#post({ type: "recovered", at: context.clock.now() });
    else this.#setTimer();
  }

  async command(command: Command): Promise<CommandReply> {
    if (this.#gone) return NO_ANSWER;
    return new Promise((resolve) => {
      this.#replies.set(command.id, resolve);
      this.#post({ type: "command", at: this.#now(), command });
    });
  }

  /** Records that what runs was interrupted, gives the session up, and stops its process behind that. */
  async shutdown(): Promise<void> {
    if (this.#gone) return;
    this.#post({ type: "shutdown", at: this.#now() });
    await this.#draining;
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
    if (!this.#gone) this.#setTimer();
  }

  async #take(batch: readonly Input[]): Promise<void> {
    const events: SessionEvent[] = [];
    const effects: Effect[] = [];
    let state = this.#state;
    for (const input of batch) {
      const next = step(state, input, this.#session.policy);
      state = next.state;
      events.push(...next.events);
      effects.push(...next.effects);
    }
    const firstId = this.#state.lastEventId + 1;
    try {
      // A step that brought about nothing (a sign of life) is kept in memory until the next one that did.
      if (events.length > 0 || effects.length > 0) await this.#store(events, state);
    } catch (error) {
      return this.#giveUp(error);
    }
    this.#state = state;
    for (const effect of effects) await this.#perform(effect, { firstId, events });
  }

  async #store(events: readonly SessionEvent[], state: SessionState): Promise<void> {
    await this.#context.backend.append(this.#session.lease, { events, at: this.#now(), state });
  }

  async #perform(effect: Effect, stored: { firstId: number; events: readonly SessionEvent[] }): Promise<void> {
    const agent = this.#process?.agent;
    switch (effect.type) {
      case "start":
        return this.#start(effect.processId, effect.first);
      case "push": {
        const event = stored.events[effect.eventId - stored.firstId] ?? (await this.#event(effect.eventId));
        if (event?.type === "prompt.queued") agent?.push(effect.promptId, event.data.text);
        return;
      }
      case "answer":
        return agent?.answer(effect.requestId, effect.decision);
      case "interrupt":
        return agent?.interrupt();
      case "stop":
        return agent?.stop();
      case "kill":
        return agent?.kill();
      case "reply":
        this.#replies.get(effect.commandId)?.(effect.reply);
        this.#replies.delete(effect.commandId);
    }
  }

  async #event(id: number): Promise<SessionEvent | undefined> {
    const [event] = await this.#context.backend.read(this.#session.lease.sessionId, id, 1);
    return event;
  }

  #start(processId: string, first: boolean): void {
    const { lease, spec } = this.#session;
    const onSignal = (signal: AgentSignal) => this.#post({ type: "signal", at: this.#now(), processId, signal });
    const agent = this.#context.runtime.start({ sessionId: lease.sessionId, options: spec, first, onSignal });
    this.#process = { id: processId, agent };
  }

  #setTimer(): void {
    this.#cancelTimer?.();
    const due = nextDeadline(this.#state, this.#session.policy);
    this.#cancelTimer =
      due === undefined ? undefined : this.#context.clock.at(due, () => this.#post({ type: "tick", at: this.#now() }));
  }

  async #readInbox(): Promise<void> {
    try {
      for await (const { command, ack } of this.#context.backend.inbox(this.#session.lease, this.#inbox.signal)) {
        // Not awaited: a second command may be what ends the first one's wait.
        void this.command(command)
          .then(ack)
          .catch((error: unknown) => this.#warn(error));
      }
    } catch (error) {
      this.#warn(error);
    }
  }

  /** The session is another's now, or its log cannot be written: what cannot be recorded must not go on. */
  #giveUp(error: unknown): void {
    if (!(error instanceof FencedError)) this.#warn(error);
    this.#process?.agent.kill();
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
    this.#context.log.warn("session actor", { sessionId, error: error instanceof Error ? error.message : String(error) });
  }
}
