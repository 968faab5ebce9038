import { createHash } from "node:crypto";
import * as fs from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { TaggedServer } from "../supervise/process-tag.ts";
import { isRunning } from "../supervise/tree.ts";

/**
 * Copies of files that were dirty before a turn, for lines and tests: one file for each turn, in a folder of this server that
 * only its user can enter.
 */

/** Maximum bytes of one copy, and of all copies of a turn. */
export const MAX_COPY_BYTES = 256 * 1024;
const MAX_TURN_BYTES = 16 * 1024 * 1024;
/** Age after which the folder of a server on another machine counts as a leftover, ms. */
const MAX_AGE_MS = 7 * 86_400_000;

/** Copies of one turn. */
export interface CopySet {
  /** `undefined` if there is no copy. */
  read(path: string): Promise<Buffer | undefined>;
}

interface Place {
  readonly at: number;
  readonly length: number;
}

export class Copies {
  readonly #all: string;
  readonly #own: string;

  constructor(stateFolder: string, { pid, startedAt }: Omit<TaggedServer, "store">) {
    this.#all = join(stateFolder, "watch");
    this.#own = join(this.#all, `${HOST}.${String(pid)}.${Buffer.from(startedAt).toString("base64url")}`);
  }

  /** Deletes copies of servers that have ended. Never rejects. */
  async sweep(): Promise<void> {
    const names = await fs.readdir(this.#all).catch(() => []);
    for (const name of names) {
      const folder = join(this.#all, name);
      if (folder !== this.#own && (await isLeftover(folder, name))) await remove(folder);
    }
  }

  /** Writes copies, the smallest first while there is room. Rejects if the disk does not take them. */
  async write(key: string, files: ReadonlyMap<string, Buffer>): Promise<CopySet> {
    const places = new Map<string, Place>();
    const parts: Buffer[] = [];
    let at = 0;
    for (const [path, bytes] of [...files].toSorted(([, a], [, b]) => a.length - b.length)) {
      if (bytes.length > MAX_COPY_BYTES || at + bytes.length > MAX_TURN_BYTES) break;
      places.set(path, { at, length: bytes.length });
      parts.push(bytes);
      at += bytes.length;
    }
    const file = this.#file(key);
    if (at > 0) {
      await fs.mkdir(this.#own, { recursive: true, mode: 0o700 });
      await fs.rm(file, { force: true });
      await fs.writeFile(file, Buffer.concat(parts), { mode: 0o600, flag: "wx" });
    }
    return { read: async (path) => readPart(file, places.get(path)) };
  }

  /** Never rejects. */
  async delete(key: string): Promise<void> {
    await remove(this.#file(key));
  }

  #file(key: string): string {
    return join(this.#own, createHash("sha256").update(key).digest("hex").slice(0, 32));
  }
}

const HOST = createHash("sha256").update(hostname()).digest("hex").slice(0, 12);

async function remove(path: string): Promise<void> {
  await fs.rm(path, { recursive: true, force: true }).catch(() => undefined);
}

async function isLeftover(folder: string, name: string): Promise<boolean> {
  const [host, pid, start = ""] = name.split(".");
  if (host === HOST) return !(await isRunning(Number(pid), Buffer.from(start, "base64url").toString()));
  const found = await fs.stat(folder).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > MAX_AGE_MS;
}

async function readPart(file: string, place: Place | undefined): Promise<Buffer | undefined> {
  if (place === undefined) return undefined;
  if (place.length === 0) return Buffer.alloc(0);
  const handle = await fs.open(file, "r").catch(() => undefined);
  if (!handle) return undefined;
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(place.length), 0, place.length, place.at);
    return bytesRead === place.length ? buffer : undefined;
  } finally {
    await handle.close();
  }
}
