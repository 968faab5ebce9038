import { type FSWatcher, utimesSync, watch } from "node:fs";
import { z } from "zod";
import { SessionWatch } from "../session-watch.ts";
import type { StoreConnection } from "./connect/store-connection.ts";

/**
 * Finds writes of other processes by asking SQLite (`data_version`), which takes microseconds and reads no data. A change of
 * the log file is a hint to ask at once. SQLite writes the log before the commit is done, so each process touches the log after
 * its commits. A hint may be lost, so `#poll` also asks at intervals, which are short after a hint.
 */
const [FIRST_MS, MAX_DELAY_MS, GROWTH] = [1, 50, 2];

const sql = { version: "PRAGMA data_version" } as const;
const Version = z.object({ data_version: z.int() });

/** Notifies subscribers of a session when any process changes it. Does not poll without subscribers. */
export class ChangeWatcher extends SessionWatch {
  readonly #access: StoreConnection;
  #polling = false;
  #delay = FIRST_MS;
  #hurry = (): void => undefined;

  constructor(access: StoreConnection) {
    super();
    this.#access = access;
  }

  protected override onReader(): void {
    void this.#poll();
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

  override close(): void {
    super.close();
    this.#hurry();
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
    while (this.hasReaders && !this.isClosed) {
      await this.#sleep();
      const version = await this.#readVersion();
      if (version !== undefined && version === last) continue;
      last = version;
      // Wakes the readers also if the store cannot be asked, so that `look` fails and reports the error.
      this.notifyAll();
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
