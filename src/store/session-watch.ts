import { setImmediate as nextTurn } from "node:timers/promises";
import type { StoredEvent } from "../domain/event.ts";
import { Notifier, followChanges } from "./change-feed.ts";

/** Part of a session to watch. `replies`: answers to commands, for their senders. `offers`, `feed`: offered sessions, the feed and the outbox, under no id. */
export type Topic = "commands" | "feed" | "log" | "offers" | "replies";
const TOPICS: readonly Topic[] = ["commands", "log", "replies"];

export interface WatchOptions<T> {
  readonly sessionId: string;
  readonly topic: Topic;
  readonly signal: AbortSignal;
  /** See `FollowOptions.look`. */
  readonly look: () => Promise<readonly T[] | undefined>;
  /** See `FollowOptions.isAll`. */
  readonly isAll?: (found: readonly T[]) => boolean;
}

/** Notifies readers of a session of its changes. Each storage engine finds the changes by other processes in its own way. */
export abstract class SessionWatch {
  readonly #notifiers = new Map<string, Notifier>();
  readonly #closing = new Notifier();
  #closed = false;

  /** Called with each new reader, to begin looking for changes by other processes. */
  protected abstract onReader(): void;

  /**
   * Yields all items that `look` finds, now and with each change of the topic, until `signal` aborts or the store is closed.
   */
  async *tail<T>({ isAll, sessionId, topic, signal, look }: WatchOptions<T>): AsyncGenerator<T, void> {
    const name = topicKey(sessionId, topic);
    const notifier = this.#notifiers.get(name) ?? new Notifier();
    this.#notifiers.set(name, notifier);
    this.onReader();
    try {
      const notifiers = [notifier, this.#closing];
      yield* followChanges({ notifiers, signal, isAll, look: () => this.#unlessClosed(look) });
    } finally {
      if (notifier.isUnused && this.#notifiers.get(name) === notifier) this.#notifiers.delete(name);
    }
  }

  /** Wakes readers after a change of the session by this process. */
  notify(sessionId: string, topics = TOPICS): void {
    for (const topic of topics) this.#notifiers.get(topicKey(sessionId, topic))?.notify();
  }

  /** Wakes all readers. */
  notifyAll(): void {
    for (const notifier of this.#notifiers.values()) notifier.notify();
  }

  close(): void {
    this.#closed = true;
    this.#closing.notify();
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get hasReaders(): boolean {
    return this.#notifiers.size > 0;
  }

  /** Returns the ids of sessions whose `topic` has readers. */
  awaited(topic: Topic): string[] {
    const prefix = topicKey("", topic);
    return [...this.#notifiers.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  async #unlessClosed<T>(look: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return this.#closed ? undefined : await look();
    } catch (error) {
      if (this.isClosed) return undefined;
      throw error;
    }
  }
}

function topicKey(sessionId: string, topic: Topic): string {
  return `${topic} ${sessionId}`;
}

/** Maximum number of events in the memory of a tail, regardless of its reader's speed. */
const TAIL_PAGE = 32;

interface LogTail {
  readonly sessionId: string;
  readonly from: number;
  readonly signal: AbortSignal;
  /** Returns `undefined` if there is no session any more. */
  readonly read: (from: number, limit: number) => Promise<StoredEvent[] | undefined>;
}

/** Yields the events of a log, now and later. */
export async function* tailLog(
  changes: SessionWatch,
  { from, read, sessionId, signal }: LogTail,
): AsyncGenerator<StoredEvent, void> {
  let next = from;
  const look = async (): Promise<StoredEvent[] | undefined> => {
    const page = await read(next, TAIL_PAGE);
    next = (page?.at(-1)?.id ?? next - 1) + 1;
    // Yields, because a long log must not block everything else in this process.
    if (page?.length === TAIL_PAGE) await nextTurn();
    return page;
  };
  const isAll = (page: readonly StoredEvent[]): boolean => page.length < TAIL_PAGE;
  yield* changes.tail({ sessionId, topic: "log", signal, look, isAll });
}

/**
 * Yields at once, and whenever `mark` has changed. `mark` returns a text that differs after each addition to the feed and the
 * outbox.
 */
export async function* tailFeed(
  changes: SessionWatch,
  mark: () => Promise<string>,
  signal: AbortSignal,
): AsyncGenerator<void, void> {
  let last: string | undefined;
  const look = async (): Promise<undefined[]> => {
    const now = await mark();
    const isNew = now !== last;
    last = now;
    return isNew ? [undefined] : [];
  };
  yield* changes.tail({ sessionId: "", topic: "feed", signal, look, isAll: () => true });
}
