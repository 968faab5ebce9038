import { mkdtemp, rm } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import { openStore, type StoreOptions } from "../../../src/store/open.ts";

/** Closes the files of closed nodes by a garbage collection: see `Connection.close`. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  await nextTurn();
}

/** A store in a file of its own; a test can connect any number of nodes. */
export class StoreFile {
  readonly folder: string;
  readonly file: string;
  readonly warnings: string[] = [];
  readonly #nodes: SessionBackend[] = [];
  now = 1_000_000;
  /** Offset of the system clock, ms. */
  setBy = 0;

  private constructor(folder: string) {
    this.folder = folder;
    this.file = join(folder, "made", "store.db");
  }

  static async make(): Promise<StoreFile> {
    return new StoreFile(await mkdtemp(join(tmpdir(), "store-")));
  }

  connect = (nodeId: string, over: Partial<StoreOptions> = {}, file = this.file): SessionBackend => {
    const silent = (): void => undefined;
    const warn = (message: string): void => void this.warnings.push(message);
    const node = openStore(
      { kind: "sqlite", file },
      {
        nodeId,
        process: { pid: process.pid, startedAt: "now" },
        isRunning: async () => Promise.resolve(true),
        clock: { now: () => this.now + this.setBy, tick: () => this.now },
        log: { debug: silent, info: silent, warn, error: silent },
        ...over,
      },
    );
    this.#nodes.push(node);
    return node;
  };

  advance = (ms: number): void => void (this.now += ms);

  time = (): number => this.now + this.setBy;

  close = async (): Promise<void> => {
    await Promise.all(this.#nodes.map(async (node) => node.close()));
    await rm(this.folder, { recursive: true, force: true });
  };
}
