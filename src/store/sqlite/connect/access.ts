import { storeTraits, type StoreLocation } from "../../../config/store.ts";
import { StoreError, type StoreFault } from "../../errors.ts";
import type { Connection } from "./connection.ts";
import { asStoreError, retryWhileBusy } from "./faults.ts";
import { StoreFiles } from "./store-files.ts";
import { checkReadable } from "./migrations.ts";

/** After these the connection is given up: the next use finds out whether the cause has gone away. */
const BROKEN: ReadonlySet<StoreFault> = new Set(["corrupt", "failed", "moved", "newer", "readonly"]);

interface Opened {
  readonly connection: Connection;
  /** Undefined where it is in memory. */
  readonly files: StoreFiles | undefined;
}

/** The way to the database: opened with the first use, and again after it broke. */
export class Access {
  /** Of the store, in messages. */
  readonly name: string;
  /** Undefined where it is in memory. */
  readonly file: string | undefined;
  readonly #open: () => Promise<Connection>;
  #opened: Promise<Opened> | undefined;
  #closed = false;
  /** The store cannot be used again by this process. */
  #lost: StoreError | undefined;

  constructor(location: StoreLocation, open: () => Promise<Connection>) {
    const { file, text } = storeTraits(location);
    this.name = text;
    this.file = file;
    this.#open = open;
  }

  /**
   * Runs `work` at once and to its end, and again when another process was in the way. Throws StoreError when the store
   * is at fault, and what `work` throws otherwise.
   */
  async use<T>(work: (db: Connection) => T): Promise<T> {
    return this.#use(({ connection }) => work(connection));
  }

  /** Throws StoreError when the files of the store are not those that were opened, or are a newer server's now. */
  async assertSame(): Promise<void> {
    // `#use` reports why the store could not be opened.
    if (this.#opened === undefined && !this.#lost) return;
    await this.#use(({ connection, files }) => {
      if (files?.areSame === false) throw new StoreError("moved", this.name);
      checkReadable(connection, this.name);
    });
  }

  async #use<T>(work: (opened: Opened) => T): Promise<T> {
    let opened: Promise<Opened> | undefined;
    try {
      return await retryWhileBusy(async () => {
        this.assertOpen();
        if (this.#lost) throw this.#lost;
        opened = this.#opened ??= this.#start();
        return work(await opened);
      });
    } catch (error) {
      // What could not be opened may be opened the next time: descriptors run out, and come back.
      const failed = opened;
      await failed?.catch(() => {
        if (this.#opened === failed) this.#opened = undefined;
      });
      const fault = asStoreError(error, this.name);
      if (fault && BROKEN.has(fault.fault) && this.file !== undefined) await this.#giveUp(opened, fault);
      throw fault ?? error;
    }
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
    try {
      return { connection, files: this.file === undefined ? undefined : new StoreFiles(this.file) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Only the connection that failed: another user of this may have opened a new one meanwhile. After the loss of its log it is neither
   * closed nor followed by another one, which would find an index that belongs to no log. Where only the name of the log is gone,
   * SQLite still has it, and moves it into the file now.
   */
  async #giveUp(opened: Promise<Opened> | undefined, fault?: StoreError): Promise<void> {
    const found = await opened?.catch(() => undefined);
    if (!found || this.#opened !== opened) return;
    this.#opened = undefined;
    const { connection, files } = found;
    if (!files?.lostLog) return connection.close();
    this.#lost = fault;
    if (files.canSave) connection.save();
  }
}
