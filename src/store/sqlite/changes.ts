import { type FSWatcher, utimesSync, watch } from "node:fs";
import { z } from "zod";
import { Notifier, tail } from "../tail.ts";
import type { Access } from "./connect/access.ts";

/**
 * What other processes write is found by asking SQLite, which knows in microseconds without a look at the data. That
 * the log of the file changes is a hint to ask at once. What SQLite writes there comes before the commit is done; so
 * each process touches it after its commits. A hint may be lost: so it is asked now and then, and soon after a hint.
 */
const [FIRST_MS, MAX_DELAY_MS, GROWTH] = [1, 50, 2];

/** What a session can be watched for. */
export type Topic = "commands" | "log";
const TOPICS: readonly Topic[] = ["commands", "log"];

const sql = { version: "PRAGMA data_version" } as const;
const Version = z.object({ data_version: z.int() });

export interface Watched<T> {
  readonly sessionId: string;
  readonly topic: Topic;
  readonly signal: AbortSignal;
  /** As `TailOptions.look`. */
  readonly look: () => Promise<readonly T[] | undefined>;
}

/** Notifies subscribers of a session when any process changes it. Does not poll without subscribers. */
export class ChangeWatcher {
  readonly #access: Access;
  readonly #notifiers = new Map<string, Notifier>();
  readonly #closing = new Notifier();
  #closed = false;
  #asking = false;
  #delay = FIRST_MS;
  #hurry = (): void => undefined;

  constructor(access: Access) {
    this.#access = access;
  }

  /** All that `look` finds in a session, now and with each change of what it is watched for, until `signal` aborts or the store is closed. */
  async *tail<T>({ sessionId, topic, signal, look }: Watched<T>): AsyncGenerator<T, void> {
    const name = nameOf(sessionId, topic);
    const notifier = this.#notifiers.get(name) ?? new Notifier();
    this.#notifiers.set(name, notifier);
    void this.#ask();
    try {
      yield* tail({ notifiers: [notifier, this.#closing], signal, look: () => this.#unlessClosed(look) });
    } finally {
      if (notifier.isUnused && this.#notifiers.get(name) === notifier) this.#notifiers.delete(name);
    }
  }

  /** This process has changed the session. */
  notify(sessionId: string, topics = TOPICS): void {
    for (const topic of topics) this.#notifiers.get(nameOf(sessionId, topic))?.notify();
  }

  /** Hints to other processes that this one has committed. */
  broadcast(): void {
    const { file } = this.#access;
    if (file === undefined) return;
    const now = new Date();
    try {
      utimesSync(logOf(file), now, now);
    } catch {
      // It is not there without a write-ahead log, or not ours to touch: the others ask now and then.
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

  async #ask(): Promise<void> {
    const { file } = this.#access;
    // What is in memory is changed by this process alone.
    if (this.#asking || file === undefined) return;
    this.#asking = true;
    // The log to watch is there once the store has been opened. What came before this was found is looked for below.
    await this.#readVersion();
    const watcher = this.#watch(logOf(file));
    let last: number | undefined;
    while (this.#notifiers.size > 0 && !this.#closed) {
      await this.#sleep();
      const version = await this.#readVersion();
      if (version !== undefined && version === last) continue;
      last = version;
      // When the store cannot be asked, those who wait must learn of it: they look, and fail as it does.
      for (const notifier of this.#notifiers.values()) notifier.notify();
    }
    watcher?.close();
    this.#asking = false;
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
      // No such file without a write-ahead log, or no watcher to be had: asking is enough.
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

/** The write-ahead log of the store. */
function logOf(file: string): string {
  return `${file}-wal`;
}

function nameOf(sessionId: string, topic: Topic): string {
  return `${topic} ${sessionId}`;
}
