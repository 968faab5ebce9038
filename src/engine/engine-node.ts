import type { Principal } from "../domain/principal.ts";
import { ProcessLimiter, type ProcessLimits, type Suspend } from "./process-limiter.ts";
import { isNested } from "./policy/gate.ts";
import { AttendReporter } from "./session/attend-reporter.ts";
import { createReader, type SessionReader } from "./session/readers.ts";
import { promptRefusal } from "./session/check-prompt.ts";
import { completePlan, type SessionDefaults } from "./session/records.ts";
import { startRetention, type Retention } from "./retention.ts";
import { followOffers, Placement } from "./placement.ts";
import { Ownership, type OwnershipOptions } from "./ownership.ts";
import type { SessionRecord } from "./ports.ts";
import { Suspending } from "./suspending.ts";
import { judgeTakeover, Recovery } from "./recovery.ts";

/** `Operator` has the server's own terms: for recovery, and for work that no client has sent. */
export interface EngineOptions
  extends Omit<OwnershipOptions, "limiter" | "objectionToStart" | "placement">, SessionDefaults {
  readonly processLimits: ProcessLimits;
  readonly retention: Retention;
  /** True to announce this node to other users of the store at start, not with the first session. */
  readonly announces?: boolean;
  /** True (default) to take over abandoned sessions and delete old sessions; a promise delays both until resolved. */
  readonly watches?: boolean | Promise<void>;
}

/** Parts shared by the engines of all connections: one server process, which is a node for the store. */
export class EngineNode {
  readonly options: EngineOptions;
  readonly limiter: ProcessLimiter;
  readonly placement: Placement;
  readonly ownership: Ownership;
  readonly suspending: Suspending;
  /** Sessions as recorded, for a server inside a session, which attends to none. */
  readonly nestedReader: SessionReader;
  /** Sessions after recovery, for services, which deliver requests and attend to no session. */
  readonly serviceReader: SessionReader;
  readonly #shown: (record: SessionRecord) => Promise<SessionRecord>;
  readonly #attendance: AttendReporter;
  /** Stops the periodic work of this node. */
  #stopRounds: readonly (() => Promise<void>)[] = [];
  #isStopping = false;
  /** Connection of a session's last prompt, by session id. Lacks sessions of other nodes and prompts without a connection. */
  readonly #connections = new Map<string, string>();

  constructor(options: EngineOptions) {
    this.options = options;
    const objectionToStart = async (record: SessionRecord, environmentId: string) =>
      promptRefusal({ ...options, environmentId }, this.ownership, record);
    const suspend: Suspend = async (record, reason) => this.suspending.suspend(record, reason);
    const connectionOf = (sessionId: string) => this.connectionOf(sessionId);
    const stateOf = (sessionId: string) => this.ownership.stateOf(sessionId);
    this.limiter = new ProcessLimiter({ ...options, suspend, connectionOf, stateOf });
    this.placement = new Placement(options);
    const takenOver = async (record: SessionRecord) =>
      judgeTakeover(await completePlan(options, record), { ...options, objectionToStart });
    const own = { ...options, limiter: this.limiter, placement: this.placement, objectionToStart };
    this.ownership = new Ownership(own, takenOver);
    options.runtime.environments.keepWhile((sessionId) => this.ownership.isBusy(sessionId));
    this.suspending = new Suspending(options, this.ownership);
    const recovery = new Recovery({ ...options, ownership: this.ownership });
    this.#attendance = new AttendReporter(options, this.ownership);
    this.#shown = async (record) => recovery.recovered(record);
    this.nestedReader = createReader(options, this.ownership);
    this.serviceReader = createReader(options, this.ownership, { shown: this.#shown });
    if (options.announces) this.ownership.announce();
    const { retention, watches = true } = options;
    if (watches === false || isNested(options.gate)) return;
    const watch = () => {
      if (this.#isStopping) return;
      const take = async (record: SessionRecord) => this.#takeOffer(record);
      this.#stopRounds = [
        recovery.watch(retention.everyMs),
        startRetention(options, retention),
        followOffers(options, take),
      ];
    };
    if (watches === true) watch();
    else void watches.then(watch);
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /**
   * Returns two readers for a client: sessions as `recorded`, and after recovery. A read counts as attending; `named` gets the id.
   */
  createReaders(
    named: (sessionId: string) => void = () => undefined,
  ): Readonly<Record<"recorded" | "recovered", SessionReader>> {
    const onRead = (record: SessionRecord) => {
      named(record.id);
      this.#attendance.note(record);
    };
    const { options, ownership } = this;
    const shown = this.#shown;
    return {
      recorded: createReader(options, ownership, { onRead }),
      recovered: createReader(options, ownership, { onRead, shown }),
    };
  }

  /** Returns the connection of the session's last prompt; `undefined` if unknown or none. */
  connectionOf(sessionId: string): string | undefined {
    return this.#connections.get(sessionId);
  }

  /** Counts the session for `connection` from now on, for sharing out slots. */
  countFor(sessionId: string, connection: string | undefined): void {
    if (connection === undefined) return;
    this.#connections.delete(sessionId);
    this.#connections.set(sessionId, connection);
    const [oldest] = this.#connections.keys();
    if (oldest !== undefined && this.#connections.size > MAX_COUNTED) this.#connections.delete(oldest);
  }

  async takeUnattended(principal: Principal): Promise<SessionRecord[]> {
    return this.#attendance.take(await this.serviceReader.list({ principal, limit: RECENT }));
  }

  /**
   * Takes an offered session. One for any node of some labels is left to others without a slot here, or without its folder.
   */
  async #takeOffer(record: SessionRecord): Promise<void> {
    const { options } = this;
    // Claims only for itself: to look after the session would end the offer.
    if ((await this.placement.whereabouts(record.place)) !== "here") return;
    const isForAny = record.place !== undefined && "labels" in record.place;
    if (isForAny && !((await this.limiter.hasSlot()) && (await completePlan(options, record)).state.identity)) return;
    await this.ownership.claim(record);
  }

  /** Begins nothing more. Running turns have `graceMs` to end; then they are recorded as interrupted by shutdown. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    await this.ownership.waitUntilQuiet(graceMs);
    await Promise.all(this.#stopRounds.map(async (stop) => stop()));
    await this.ownership.drain();
  }
}

/** Number of recently changed sessions checked for unattended work. */
const RECENT = 50;

/** Maximum number of entries in `#connections`. The session without a prompt for longest is forgotten first. */
const MAX_COUNTED = 10_000;
