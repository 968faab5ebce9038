import { type FSWatcher, utimesSync, watch } from "node:fs";
import { z } from "zod";
import { Notifier, followChanges } from "../change-feed.ts";
import type { StoreConnection } from "./connect/store-connection.ts";

/**
 * Finds writes of other processes by asking SQLite (`data_version`), which takes microseconds and reads no data. A change of
 * the log file is a hint to ask at once. SQLite writes the log before the commit is done, so each process touches the log after
 * its commits. A hint may be lost, so `#poll` also asks at intervals, which are short after a hint.
 */
const [FIRST_MS, MAX_DELAY_MS, GROWTH] = [1, 50, 2];

/** Part of a session to watch. */
export type Topic = "commands" | "log";
const TOPICS: readonly Topic[] = ["commands", "log"];

const sql = { version: "PRAGMA data_version" } as const;
const Version = z.object({ data_version: z.int() });

export interface WatchOptions<T> {
  readonly sessionId: string;
  readonly topic: Topic;
  readonly signal: AbortSignal;
  /** See `FollowOptions.look`. */
  readonly look: () => Promise<readonly T[] | undefined>;
}

/** Notifies subscribers of a session when any process changes it. Does not poll without subscribers. */
export class ChangeWatcher {
  readonly #access: StoreConnection;
  readonly #notifiers = new Map<string, Notifier>();
  readonly #closing = new Notifier();
  #closed = false;
  #polling = false;
  #delay = FIRST_MS;
  #hurry = (): void => undefined;

  constructor(access: StoreConnection) {
    this.#access = access;
  }

  /**
   * Yields all items that `look` finds, now and with each change of the topic, until `signal` aborts or the store is closed.
   */
  async *tail<T>({ sessionId, topic, signal, look }: WatchOptions<T>): AsyncGenerator<T, void> {
    const name = topicKey(sessionId, topic);
    const notifier = this.#notifiers.get(name) ?? new Notifier();
    this.#notifiers.set(name, notifier);
    void this.#poll();
    try {
      yield* followChanges({ notifiers: [notifier, this.#closing], signal, look: () => this.#unlessClosed(look) });
    } finally {
      if (notifier.isUnused && this.#notifiers.get(name) === notifier) this.#notifiers.delete(name);
    }
  }

  /** Wakes readers after a change of the session by this process. */
  notify(sessionId: string, topics = TOPICS): void {
    for (const topic of topics) this.#notifiers.get(topicKey(sessionId, topic))?.notify();
  }

  /** Gives other processes the hint that this process has committed. */
  broadcast(): void {
    const { file } = this.#access;
    if (file === undefined) return;
    const now = new Date();
    try {
      utimesSync(logPath(file), now, now);
    } catch {
      // The log is missing (no write-ahead log), or closed to this user: without a hint, processes ask at intervals.
    }
  }

  close(): void {
    this.#closed = true;
    this.#closing.notify();
    this.#hurry();
  }

  async #unlessClosed<T>(look: () => Promise<T | undefined>): Promise<T | undefined> {
    const ended = (): boolean => this.#closed;
    try {
      return ended() ? undefined : await look();
    } catch (error) {
      if (ended()) return undefined;
      throw error;
    }
  }

  async #poll(): Promise<void> {
    const { file } = this.#access;
    // Only this process changes a store in memory.
    if (this.#polling || file === undefined) return;
    this.#polling = true;
    // Opens the store, so that the log to watch exists. The loop below finds changes made before the watch.
    await this.#readVersion();
    const watcher = this.#watch(logPath(file));
    let last: number | undefined;
    while (this.#notifiers.size > 0 && !this.#closed) {
      await this.#sleep();
      const version = await this.#readVersion();
      if (version !== undefined && version === last) continue;
      last = version;
      // Wakes the readers also if the store cannot be asked, so that `look` fails and reports the error.
      for (const notifier of this.#notifiers.values()) notifier.notify();
    }
    watcher?.close();
    this.#polling = false;
  }

  async #readVersion(): Promise<number | undefined> {
    return this.#access.use((db) => db.get(sql.version, Version)?.data_version).catch(() => undefined);
  }

  #watch(log: string): FSWatcher | undefined {
    try {
      const watcher = watch(log, { persistent: false }, () => this.#hurry());
      watcher.on("error", () => watcher.close());
      return watcher;
    } catch {
      // The file is missing (no write-ahead log), or no watcher is available: asking is enough.
      return undefined;
    }
  }

  /** Sleeps with exponential backoff, which a hint resets. */
  #sleep(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#delay).unref();
      this.#delay = Math.min(GROWTH * this.#delay, MAX_DELAY_MS);
      this.#hurry = () => {
        this.#delay = FIRST_MS;
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function logPath(file: string): string {
  return `${file}-wal`;
}

function topicKey(sessionId: string, topic: Topic): string {
  return `${topic} ${sessionId}`;
}
