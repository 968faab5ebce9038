import type { SessionState } from "../domain/session.ts";
import type { AgentRuntime, AgentSignal, Clock, Logger, SessionBackend, SessionRecord } from "./ports.ts";

/** Limits on Claude Code processes, over all servers of the store. */
export interface ProcessLimits {
  readonly maxLive: number;
  /** Maximum number of starting processes: each takes a core for half a second. */
  readonly maxStarting: number;
  /** Maximum number of slots held by background work alone while others wait. */
  readonly maxBackground: number;
}

/** Asks the owner of a session whose turn is over, or waits at a limit, to close the process. */
export type Suspend = (record: SessionRecord, reason: "slot" | undefined) => Promise<void>;

interface ProcessLimiterContext {
  readonly backend: Pick<SessionBackend, "leases">;
  readonly processLimits: ProcessLimits;
  readonly runtime: Pick<AgentRuntime, "shimRelation" | "spares">;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** Returns the state of a session that this node owns. */
  readonly stateOf: (sessionId: string) => SessionState | undefined;
  readonly suspend: Suspend;
  /** Returns the connection that a session of this node counts for; `undefined` for sessions of other nodes. */
  readonly connectionOf: (sessionId: string) => string | undefined;
}

/** `before`: number of sessions ahead. A session with `hasSlot` waits because others are starting. */
export interface SlotWait {
  readonly before: number;
  readonly hasSlot: boolean;
}

interface Waiter {
  readonly admit: () => void;
  readonly reject: (error: Error) => void;
  /** Called once, if the session has to wait. */
  onWait: ((wait: SlotWait) => void) | undefined;
}

/** Maximum number of abandoned sessions counted; more than a machine can run. */
const MAX_KEPT = 1_000;

/** Interval at which a waiting session checks for a free slot, ms. */
const LOOK_MS = 100;
/** Time after which waiting sessions are rejected if every check for a slot has failed, ms. */
const FAILING_MS = 30_000;

/**
 * Limits the number of Claude Code processes over all servers of a store. A session that waits for a slot is recorded as
 * starting, like a running session, so every server sees one queue in one order. Each server starts its own sessions as their
 * turn comes, and asks the session that has been idle longest to suspend. There is no coordinator.
 */
export class ProcessLimiter {
  readonly #context: ProcessLimiterContext;
  readonly #waiters = new Map<string, Waiter>();
  /** Sessions with a pending request to suspend. */
  readonly #asked = new Set<string>();
  #isLooking = false;
  /** Tick since which every look has failed. */
  #failingSince: number | undefined;

  constructor(context: ProcessLimiterContext) {
    this.#context = context;
  }

  /** Resolves when the session may start its process; rejects when `signal` aborts. */
  async acquireSlot(sessionId: string, signal: AbortSignal, onWait: (wait: SlotWait) => void): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const waiter = { admit: resolve, reject, onWait };
      this.#waiters.set(sessionId, waiter);
      const leave = () => {
        if (this.#waiters.get(sessionId) === waiter) this.#waiters.delete(sessionId);
        reject(new Error("The process was stopped before it started."));
      };
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
      if (!this.#isLooking) void this.#look();
    });
  }

  /** Returns the number of sessions ahead; `undefined` if the session does not wait. */
  async before(sessionId: string): Promise<number | undefined> {
    const queue = (await this.#atWork()).filter(isWaiting).toSorted(byTurn);
    const index = queue.findIndex(({ id }) => id === sessionId);
    return index === -1 ? undefined : index;
  }

  /** True if a session would get a slot at once. */
  async hasSlot(): Promise<boolean> {
    const running = (await this.#atWork()).filter(hasProcess).length;
    return running < this.#context.processLimits.maxLive;
  }

  /** True if a spare may be kept: half of the slots are for other servers, which do not see spares in the store. */
  async hasFreeSlot(): Promise<boolean> {
    const { processLimits, runtime } = this.#context;
    const running = (await this.#atWork()).filter(hasProcess).length;
    return 2 * (running + runtime.spares.available + 1) <= processLimits.maxLive;
  }

  /** Returns sessions at work, also of dead servers if a shim keeps the process for another server. */
  async #atWork(): Promise<SessionRecord[]> {
    const { backend, runtime } = this.#context;
    const [records, abandoned] = await Promise.all([backend.leases.atWork(), backend.leases.abandoned(MAX_KEPT)]);
    const isKept = async ({ state }: SessionRecord) => (await runtime.shimRelation(state.process)) !== "gone";
    const kept = await Promise.all(abandoned.map(async (record) => ((await isKept(record)) ? [record] : [])));
    return [...records, ...kept.flat()].map((record) => this.#asKnown(record));
  }

  /** Uses the owner's state for a session with an unreadable row. */
  #asKnown(record: SessionRecord): SessionRecord {
    const { unreadable, ...rest } = record;
    const state = unreadable && this.#context.stateOf(record.id);
    return state ? { ...rest, state } : record;
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    // Admits sessions that arrive at once together.
    await Promise.resolve();
    while (this.#waiters.size > 0) {
      await this.#lookOnce().then(
        () => (this.#failingSince = undefined),
        (error: unknown) => this.#onFailure(error),
      );
      if (this.#waiters.size > 0) await this.#pause();
    }
    this.#isLooking = false;
  }

  /** Rejects the waiting sessions once checks have failed for `FAILING_MS`, because a start must not wait for ever. */
  #onFailure(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    const now = this.#context.clock.tick();
    if (this.#failingSince === undefined) this.#context.log.warn("looking for a free slot failed", { error: why });
    this.#failingSince ??= now;
    if (now - this.#failingSince < FAILING_MS) return;
    for (const { reject } of this.#waiters.values())
      reject(new Error(`No slot for Claude Code could be found: ${why}`));
    this.#waiters.clear();
    this.#failingSince = undefined;
  }

  async #pause(): Promise<void> {
    const { clock } = this.#context;
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }

  async #lookOnce(): Promise<void> {
    const records = await this.#atWork();
    const { available } = this.#context.runtime.spares;
    const queue = records.filter(isWaiting).toSorted(byTurn);
    const running = records.filter((record) => hasProcess(record) && !hasNoSlot(record));
    const starting = running.filter(({ state }) => state.process.phase === "starting").length;
    const { maxLive, maxStarting } = this.#context.processLimits;
    // Retires spares in slots that sessions wait for.
    if (queue.length > maxLive - running.length - available) void this.#context.runtime.spares.retire();
    const free = Math.max(maxLive - running.length - available, 0);
    const admitted = Math.min(free, Math.max(maxStarting - starting, 0));
    for (const [index, { id }] of this.#fairly(queue, running).entries()) {
      // The slot of a retiring spare is free in a moment, so no wait is reported.
      const isReported = index < free || index >= maxLive - running.length;
      this.#callUp(id, index < admitted ? "admit" : isReported && { before: index - admitted, hasSlot: index < free });
    }
    const first = queue.filter((record) => rankOf(record) === 0);
    this.#makeRoom({ all: queue.length - free, first: first.length - free }, running);
  }

  /**
   * Gives the places of this node's sessions in `queue` to the connections with the fewest processes first, within each
   * priority. Other nodes only count places and need not know the order.
   */
  #fairly(queue: readonly SessionRecord[], running: readonly SessionRecord[]): readonly SessionRecord[] {
    const own = queue.filter(({ id }) => this.#waiters.has(id));
    const load = new Map<string, number>();
    const connectionOf = ({ id }: SessionRecord) => this.#context.connectionOf(id);
    const count = (record: SessionRecord) => {
      const connection = connectionOf(record);
      if (connection === undefined) return 0;
      const countBefore = load.get(connection) ?? 0;
      load.set(connection, countBefore + 1);
      return countBefore;
    };
    for (const record of running) count(record);
    // The sort is stable: sessions of one connection keep their order.
    const turns = own
      .map((record) => ({ record, before: count(record) }))
      .toSorted((a, b) => rankOf(a.record) - rankOf(b.record) || a.before - b.before);
    return queue.map((record) => (this.#waiters.has(record.id) ? (turns.shift()?.record ?? record) : record));
  }

  /**
   * Asks for as many slots as `wanted` sessions lack; `first` of them are of normal priority, and only for those does a session
   * of normal priority lose background work. Not awaited: an owner that does not answer must not hold up sessions that find a
   * slot elsewhere.
   */
  #makeRoom(wanted: { readonly all: number; readonly first: number }, running: readonly SessionRecord[]): void {
    const ending = running.filter(({ state }) => state.process.phase === "ending").length;
    const coming = ending + this.#asked.size;
    const suspendable = running.filter(maySuspend).toSorted(firstToSuspend);
    const idle = suspendable.filter((record) => !hasBackground(record));
    const behind = suspendable.filter(hasBackground);
    const beyondCap = behind.slice(0, Math.max(behind.length - this.#context.processLimits.maxBackground, 0));
    const free = [...idle, ...beyondCap].filter(({ id }) => !this.#asked.has(id));
    for (const [index, record] of free.slice(0, Math.max(wanted.all - coming, 0)).entries()) {
      const losesWork = hasBackground(record);
      if (losesWork && rankOf(record) === 0 && index >= wanted.first - coming) continue;
      this.#asked.add(record.id);
      void this.#context.suspend(record, losesWork ? "slot" : undefined).finally(() => this.#asked.delete(record.id));
    }
  }

  #callUp(sessionId: string, told: "admit" | SlotWait | false): void {
    const waiter = this.#waiters.get(sessionId);
    if (!waiter || told === false) return;
    if (told === "admit") {
      this.#waiters.delete(sessionId);
      waiter.admit();
    } else {
      waiter.onWait?.(told);
      waiter.onWait = undefined;
    }
  }
}

/** Counts an unreadable session as well, because it is at work under a living owner and takes a slot. */
function hasProcess({ state, unreadable }: SessionRecord): boolean {
  return state.process.phase !== "none" || unreadable !== undefined;
}

function hasNoSlot({ state }: SessionRecord): boolean {
  return state.process.phase === "starting" && state.process.waiting === true;
}

function isWaiting(record: SessionRecord): boolean {
  const { process } = record.state;
  return hasNoSlot(record) && process.phase === "starting" && process.installing !== true;
}

/** Sorts the queue for slots, equally on every server: sessions of priority `background` come after all others. */
function byTurn(a: SessionRecord, b: SessionRecord): number {
  return rankOf(a) - rankOf(b) || sinceOf(a) - sinceOf(b) || (a.id < b.id ? -1 : 1);
}

function rankOf({ spec }: SessionRecord): number {
  return spec.priority === "background" ? 1 : 0;
}

function sinceOf({ state }: SessionRecord): number {
  return state.process.phase === "none" ? 0 : state.process.since;
}

/** True if the next prompt, or the end of a wait at a limit, can resume the session. */
function maySuspend({ spec, state }: SessionRecord): boolean {
  const { process, queue, turn, waiting } = state;
  const isIdle = !turn && queue.every(({ held }) => held);
  const isAtLimit = turn !== null && waiting !== undefined && state.background.length === 0;
  return process.phase === "live" && (isIdle || isAtLimit) && spec.persistSession !== false;
}

/** Sorts sessions of priority `background` first, then those without work for longest. */
function firstToSuspend(a: SessionRecord, b: SessionRecord): number {
  return rankOf(b) - rankOf(a) || stillSince(a) - stillSince(b);
}

function stillSince({ state: { idleSince, turn, waiting } }: SessionRecord): number {
  return turn && waiting ? waiting.since : idleSince;
}

function hasBackground({ state }: SessionRecord): boolean {
  return state.background.length > 0;
}

export function waitingNotice({ before, hasSlot }: SlotWait): AgentSignal {
  const ahead = before === 0 ? "first in the queue" : `${String(before)} ahead of it`;
  const starting = "Other sessions are starting, and this machine starts no more at once: this session waits";
  const full = "All --max-live slots are in use: this session waits for a free one";
  return { type: "notice", kind: "waiting", message: `${hasSlot ? starting : full}, ${ahead}.` };
}
