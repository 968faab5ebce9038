import type { Principal } from "../domain/principal.ts";
import { ProcessLimiter, type ProcessLimits, type Suspend } from "./process-limiter.ts";
import { isNested } from "./policy/gate.ts";
import { Attention } from "./session/attention.ts";
import { lookingOf, type Looking } from "./session/restricted.ts";
import { mayPrompt } from "./session/check-prompt.ts";
import { startRetention, type Retention } from "./retention.ts";
import { Ownership, type OwnershipOptions } from "./ownership.ts";
import type { SessionRecord } from "./ports.ts";
import { Suspending } from "./suspending.ts";
import { asTakenOver, Recovery } from "./recovery.ts";

/** `Operator` is the server's own terms here: for recovery, and for what no client has sent. */
export interface EngineOptions extends Omit<OwnershipOptions, "limiter"> {
  readonly processLimits: ProcessLimits;
  readonly retention: Retention;
  /** Announces this node to the other users of the store at its start, not with its first session. */
  readonly announces?: boolean;
  /** Takes over what dead servers left and deletes what is old. Default true; a promise delays both until resolved. */
  readonly watches?: boolean | Promise<void>;
}

/** What the engines of all connections share: one server process, as the store knows it. */
export class EngineNode {
  readonly options: EngineOptions;
  readonly limiter: ProcessLimiter;
  readonly ownership: Ownership;
  readonly suspending: Suspending;
  /** Sessions as they are recorded: for a server inside a session. It is no client that attends to one. */
  readonly inside: Looking;
  /** Sessions after recovery, for services: they deliver requests, and attend to no session. */
  readonly unwatched: Looking;
  readonly #shown: (record: SessionRecord) => Promise<SessionRecord>;
  readonly #attention: Attention;
  /** Stops the periodic work of this node. */
  #stopRounds: readonly (() => Promise<void>)[] = [];
  #isStopping = false;
  /** The connection from which a session had its last prompt, by session id; only those of this node that have one. */
  readonly #connections = new Map<string, string>();

  constructor(options: EngineOptions) {
    this.options = options;
    const mayRun = async (record: SessionRecord, environmentId: string) =>
      mayPrompt({ ...options, environmentId }, this.ownership, record);
    const suspend: Suspend = async (record, reason) => this.suspending.suspend(record, reason);
    const connectionOf = (sessionId: string) => this.connectionOf(sessionId);
    const stateOf = (sessionId: string) => this.ownership.stateOf(sessionId);
    this.limiter = new ProcessLimiter({ ...options, suspend, connectionOf, stateOf });
    const takenOver = async (record: SessionRecord) => asTakenOver(record, { ...options, mayRun });
    this.ownership = new Ownership({ ...options, limiter: this.limiter }, takenOver);
    this.suspending = new Suspending(options, this.ownership);
    const recovery = new Recovery({ ...options, ownership: this.ownership });
    this.#attention = new Attention(options, this.ownership);
    this.#shown = async (record) => recovery.recovered(record);
    this.inside = lookingOf(options, this.ownership);
    this.unwatched = lookingOf(options, this.ownership, { shown: this.#shown });
    if (options.announces) this.ownership.announce();
    const { retention, watches = true } = options;
    if (watches === false || isNested(options.gate)) return;
    const watch = () => {
      if (this.#isStopping) return;
      this.#stopRounds = [recovery.watch(retention.everyMs), startRetention(options, retention)];
    };
    if (watches === true) watch();
    else void watches.then(watch);
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Sessions as recorded, and after recovery, for a client: it attends to those that it reads, and `named` gets their ids. */
  lookings(named: (sessionId: string) => void = () => undefined): Readonly<Record<"looking" | "recovered", Looking>> {
    const onLook = (record: SessionRecord) => {
      named(record.id);
      this.#attention.note(record);
    };
    const { options, ownership } = this;
    const shown = this.#shown;
    return {
      looking: lookingOf(options, ownership, { onLook }),
      recovered: lookingOf(options, ownership, { onLook, shown }),
    };
  }

  /** From which a session had its last prompt; undefined where that is not known, or was none. */
  connectionOf(sessionId: string): string | undefined {
    return this.#connections.get(sessionId);
  }

  /** From now on the session counts for this connection when slots are shared out. */
  countFor(sessionId: string, connection: string | undefined): void {
    if (connection === undefined) return;
    this.#connections.delete(sessionId);
    this.#connections.set(sessionId, connection);
    const [oldest] = this.#connections.keys();
    if (oldest !== undefined && this.#connections.size > MAX_COUNTED) this.#connections.delete(oldest);
  }

  async takeUnattended(principal: Principal): Promise<SessionRecord[]> {
    return this.#attention.take(await this.unwatched.list({ principal, limit: RECENT }));
  }

  /** Begins nothing more. Turns that run have `graceMs` to end, then they are recorded as interrupted by shutdown. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await this.ownership.quiet(graceMs);
    await Promise.all(this.#stopRounds.map(async (stop) => stop()));
    await this.ownership.drain();
  }
}

/** Sessions that are looked at for unattended work, the last that changed. */
const RECENT = 50;

/** Sessions whose connection is remembered; the one without a prompt for longest is forgotten first. */
const MAX_COUNTED = 10_000;
