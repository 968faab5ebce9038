import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable } from "node:stream";

import { build } from "rolldown";

/** Heap smaller than the long log, so that garbage is not mistaken for retained memory. */
const SMALL = ["--expose-gc", "--max-old-space-size=48", "--max-semi-space-size=2"];

export type Role = "begin" | "echo" | "volume" | "write";

/** The present source of the store, compiled to JavaScript for processes of their own, because Node 20 reads no TypeScript. */
export class Compiled {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<Compiled> {
    // Inside node_modules, so that packages resolve.
    const folder = await mkdtemp(join("node_modules", ".store-test-"));
    const external = ["@photostructure/sqlite"];
    await build({ input: { "store/open": "src/store/open.ts" }, platform: "node", external, output: { dir: folder } });
    return new Compiled(join(process.cwd(), folder));
  }

  start(role: Role, file: string, about: readonly string[]): StoreProcess {
    const program = join("test", "unit", "fixtures", "store-node.mjs");
    const args = [...SMALL, program, role, this.folder, file, ...about];
    return new StoreProcess(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }));
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

export class StoreProcess {
  readonly #child: ChildProcessByStdio<null, Readable, null>;
  readonly #lines: Interface;
  /** Parsed output so far. */
  readonly said: unknown[] = [];
  readonly ended: Promise<void>;

  constructor(child: ChildProcessByStdio<null, Readable, null>) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
    this.#lines.on("line", (line) => this.said.push(JSON.parse(line)));
    this.ended = new Promise((resolve) => child.once("close", () => resolve()));
  }

  /** Resolves when the process has written `count` lines. */
  async says(count: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.said.length < count) return;
        this.#lines.off("line", look);
        resolve();
      };
      this.#lines.on("line", look);
      look();
    });
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}
