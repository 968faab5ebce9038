import { storeTraits, type StoreLocation } from "../../../config/store.ts";
import { type FileFault, StoreError } from "../../errors.ts";
import type { Connection } from "./connection.ts";
import { asStoreError, retryWhileBusy } from "./faults.ts";
import { StoreFiles } from "./store-files.ts";
import { checkReadable } from "./migrations.ts";

/** Faults after which the connection is given up: the next use finds out if the cause has gone away. */
const BROKEN: ReadonlySet<string> = new Set<FileFault>(["corrupt", "failed", "moved", "newer", "readonly"]);

interface OpenFile {
  readonly connection: Connection;
  /** `undefined` for a store in memory. */
  readonly files: StoreFiles | undefined;
}

/** Opens the database with the first use, and again after a failure. */
export class StoreConnection {
  /** Name of the store in messages. */
  readonly name: string;
  /** `undefined` for a store in memory. */
  readonly file: string | undefined;
  readonly #open: () => Promise<Connection>;
  #opened: Promise<OpenFile> | undefined;
  #closed = false;
  /** Set once this process cannot use the store again. */
  #lost: StoreError | undefined;

  constructor(location: StoreLocation, open: () => Promise<Connection>) {
    const { file, text } = storeTraits(location);
    this.name = text;
    this.file = file;
    this.#open = open;
  }

  /**
   * Runs `work` synchronously, and again if another process was in the way. Throws `StoreError` if the store is at fault, and
   * otherwise the error of `work`.
   */
  async use<T>(work: (db: Connection) => T): Promise<T> {
    return this.#use(({ connection }) => work(connection));
  }

  /** Throws `StoreError` if the files of the store are not the opened ones, or now belong to a newer server. */
  async assertSame(): Promise<void> {
    // `#use` reports why the store could not be opened.
    if (this.#opened === undefined && !this.#lost) return;
    await this.#use(({ connection, files }) => {
      if (files?.areSame === false) throw new StoreError("moved", this.name);
      checkReadable(connection, this.name);
    });
  }

  async #use<T>(work: (opened: OpenFile) => T): Promise<T> {
    let opened: Promise<OpenFile> | undefined;
    try {
      return await retryWhileBusy(async () => {
        this.assertOpen();
        if (this.#lost) throw this.#lost;
        opened = this.#opened ??= this.#start();
        return work(await opened);
      });
    } catch (error) {
      // Allows another attempt to open: descriptors run out, and come back.
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

  async #start(): Promise<OpenFile> {
    const connection = await this.#open();
    try {
      return { connection, files: this.file === undefined ? undefined : new StoreFiles(this.file) };
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * Gives up only the failed connection: another user of `StoreConnection` may have opened a new one meanwhile. After the loss of the
   * log, the connection is neither closed nor replaced, because a new one would find an index without its log. If only the name
   * of the log is gone, SQLite still has the log, and moves its content into the file now.
   */
  async #giveUp(opened: Promise<OpenFile> | undefined, fault?: StoreError): Promise<void> {
    const found = await opened?.catch(() => undefined);
    if (!found || this.#opened !== opened) return;
    this.#opened = undefined;
    const { connection, files } = found;
    if (!files?.lostLog) return connection.close();
    this.#lost = fault;
    if (files.canSave) connection.save();
  }
}
