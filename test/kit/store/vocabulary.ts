import { randomUUID } from "node:crypto";
import type { Command, CommandReply } from "../../../src/domain/command.ts";
import type { SessionEvent } from "../../../src/domain/event.ts";
import { initialState, type SessionState } from "../../../src/domain/session.ts";
import { WATCH_MS } from "../../../src/store/liveness.ts";
import type { InboxItem, Lease, NewSession, SessionBackend } from "../../../src/engine/ports.ts";

/** Shared values and helpers of the store tests. */

export interface StoreUnderTest {
  connect(nodeId: string): Promise<SessionBackend> | SessionBackend;
  /** Lets `ms` pass on the clock of the leases. */
  advance(ms: number): Promise<void> | void;
  /** Present time of the store, ms since the epoch. */
  time(): number;
  close(): Promise<void>;
}

export const TTL = 30_000;
/** Interval of renewals in the tests. Longer than the time for which an expired lease is watched. */
const RENEW_MS = WATCH_MS + 1;
/** `LONG`: time limit of a command that must be answered. `SHORT`: of a command that must not, ms. */
export const [LONG, SHORT] = [60_000, 20];
export const T0 = 1_800_000_000_000;
export const never = new AbortController().signal;
export const NASTY = `NUL \0 escaped \\u0000 lone \ud83d and \ude42\ud83d emoji 🙂 line \u2028 quotes "'\` wildcards %_\\`;
export const failed: SessionState = { ...initialState(T0), lastOutcome: "lost" };

export const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);
export const notice = (message: string): SessionEvent => ({ type: "notice", data: { kind: "warning", message } });
/** Event of the feed, as `session.waits`. */
export const waits = (message = ""): SessionEvent => ({ type: "notice", data: { kind: "waiting", message } });
export const notices = (from: number, to: number): SessionEvent[] => range(from, to).map((n) => notice(String(n)));
export const prompt = (text: string): SessionEvent => ({ type: "prompt.queued", data: { promptId: "p", text } });
export const command = (by = "x"): Command => ({
  id: randomUUID(),
  principal: "local",
  kind: "interrupt",
  data: { by },
});
export const done = (cursor: number): CommandReply => ({ ok: true, cursor });
export const iterator = <T>(items: AsyncIterable<T>): AsyncIterator<T> => items[Symbol.asyncIterator]();

export function session(over: Partial<NewSession> = {}): NewSession {
  return { id: randomUUID(), principal: "local", spec: { cwd: "/repo" }, state: initialState(T0), at: T0, ...over };
}

export const claimLease = async (node: SessionBackend, id: string): Promise<Lease> => (await node.leases.claim(id))!;

/** Appends as an owner does: the state advances with the events. */
export async function write(owner: SessionBackend, lease: Lease, events: SessionEvent[], at = T0): Promise<void> {
  const { state } = (await owner.rows.get(lease.sessionId))!;
  await owner.log.append(lease, { events, at, state: { ...state, lastEventId: state.lastEventId + events.length } });
}

/** Returns the first `n` items and closes the iterable. */
export async function take<T>(n: number, items: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) if (taken.push(item) === n) break;
  return taken;
}

/** Two living nodes on one store. */
export class World {
  readonly store: StoreUnderTest;
  readonly a: SessionBackend;
  readonly b: SessionBackend;

  private constructor(store: StoreUnderTest, [a, b]: [SessionBackend, SessionBackend]) {
    this.store = store;
    this.a = a;
    this.b = b;
  }

  static async begin(store: StoreUnderTest): Promise<World> {
    const [a, b] = [await store.connect("a"), await store.connect("b")];
    await Promise.all([a.leases.heartbeat(TTL), b.leases.heartbeat(TTL)]);
    return new World(store, [a, b]);
  }

  /** Creates a session owned by node a. */
  createOwned = async (over: Partial<NewSession> = {}): Promise<{ id: string; lease: Lease }> => {
    const lease = await claimLease(this.a, (await this.a.rows.create(session(over))).record.id);
    return { id: lease.sessionId, lease };
  };

  /** Returns the row and log of a session as node b reads them. */
  readFromB = async (id: string): Promise<unknown[]> => [await this.b.rows.get(id), await this.b.log.read(id, 1, 1000)];

  /** Lets the lease of node a expire, and time pass until b considers a dead. Meanwhile b renews its own, as a server does. */
  expireLeaseOfA = async (): Promise<void> => {
    for (const _ of range(1, Math.ceil(TTL / RENEW_MS) + 1)) {
      await this.store.advance(RENEW_MS);
      await this.b.leases.heartbeat(TTL);
    }
  };

  next = async (lease: Lease, node = this.a): Promise<InboxItem> =>
    (await take(1, node.inbox.receive(lease, never)))[0]!;
}
