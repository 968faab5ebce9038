import { stat } from "node:fs/promises";
import { StoreError, type StoreFault } from "../../errors.ts";
import type { Connection } from "./connection.ts";
import { asStoreError } from "./faults.ts";
import { patiently } from "./patience.ts";

/** After these the connection is given up: the next use finds out whether the cause has gone away. */
const BROKEN: ReadonlySet<StoreFault> = new Set(["corrupt", "failed", "moved", "readonly"]);

interface Opened {
  readonly connection: Connection;
  /** Which file it is, whatever its name is by now. */
  readonly identity: string;
}

/** The way to the database: opened with the first use, and again after it broke. */
export class Access {
  readonly file: string;
  readonly #open: () => Promise<Connection>;
  #opened: Promise<Opened> | undefined;
  #closed = false;

  constructor(file: string, open: () => Promise<Connection>) {
    this.file = file;
    this.#open = open;
  }

  /**
   * Runs `work` at once and to its end, and again when another process was in the way. Throws StoreError when the store
   * is at fault, and what `work` throws otherwise.
   */
  async use<T>(work: (db: Connection) => T): Promise<T> {
    let opened: Promise<Opened> | undefined;
    try {
      return await patiently(async () => {
        this.assertOpen();
        opened = this.#opened ??= this.#start();
        return work((await opened).connection);
      });
    } catch (error) {
      const fault = asStoreError(error, this.file);
      if (fault && BROKEN.has(fault.fault)) await this.#giveUp(opened);
      throw fault ?? error;
    }
  }

  /** Throws StoreError when the name leads to another file by now: what is written to this one nobody would find. */
  async assertInPlace(): Promise<void> {
    const opened = this.#opened;
    // Why it could not be opened is said, in words, to whoever uses it.
    const found = await opened?.catch(() => undefined);
    if (!found || found.identity === (await identityOf(this.file))) return;
    await this.#giveUp(opened);
    throw new StoreError("moved", this.file);
  }

  assertOpen(): void {
    if (this.#closed) throw new Error("the store is closed");
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#giveUp(this.#opened);
  }

  async #start(): Promise<Opened> {
    const connection = await this.#open();
    return { connection, identity: await identityOf(this.file) };
  }

  /** Only the connection that failed: another user of this may have opened a new one meanwhile. */
  async #giveUp(opened: Promise<Opened> | undefined): Promise<void> {
    if (opened === undefined || this.#opened !== opened) return;
    this.#opened = undefined;
    const { connection } = await opened.catch(() => ({ connection: undefined }));
    connection?.close();
  }
}

async function identityOf(file: string): Promise<string> {
  const { dev, ino } = await stat(file).catch(() => ({ dev: 0, ino: 0 }));
  return `${String(dev)} ${String(ino)}`;
}
