import { constants, existsSync } from "node:fs";
import { access, mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive } from "../claude/supervise/tree.ts";
import { nearestExisting, InstallError, type Fault } from "./install-faults.ts";
import { breakLock, readHolder, isHeld, takeLock, type Holder } from "./install-lock.ts";
import { isComplete, runNpm } from "./npm.ts";
import type { Pinned } from "./pinned.ts";

/**
 * Installs packages in the user's cache folder, once for all servers. npm installs into a draft folder, which is renamed when
 * complete, so that a folder with the final name is always usable.
 */

interface CacheOptions {
  /** Cache folder of this program. */
  readonly cacheFolder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Interval of checks while another server installs, ms. */
const POLL_MS = 200;
/** Packages that no server has used for this time are removed, ms. */
const UNUSED_MS = 30 * 86_400_000;

export class PackageCache {
  readonly #folder: string;
  readonly #environment: CacheOptions["environment"];
  readonly #running = new Map<string, Promise<void>>();

  constructor({ cacheFolder, environment }: CacheOptions) {
    this.#folder = join(cacheFolder, "packages");
    this.#environment = environment;
  }

  get folder(): string {
    return this.#folder;
  }

  /** Returns the file to load or start, `undefined` if the package is not installed. Counts as a use of the package. */
  findEntry(pinned: Pinned): string | undefined {
    const file = join(this.#target(pinned), "node_modules", pinned.name, pinned.entry);
    if (!existsSync(file)) return undefined;
    void this.#noteUse(pinned);
    return file;
  }

  /**
   * Installs the package if missing, or waits for the process that does. `environment` is passed to npm. Throws `InstallError`.
   */
  async install(pinned: Pinned, environment = this.#environment): Promise<void> {
    const known = this.#running.get(pinned.name);
    if (known) return known;
    const running = this.#install(pinned, environment).finally(() => this.#running.delete(pinned.name));
    this.#running.set(pinned.name, running);
    return running;
  }

  /** Resolves to the installed size in bytes, including an installation by another server in progress. */
  async installedBytes(pinned: Pinned): Promise<number> {
    if (this.findEntry(pinned) !== undefined) return pinned.bytes;
    const holder = await readHolder(this.#lock(pinned));
    if (!holder) return 0;
    return Math.min(await bytesBelow(join(holder.folder, "node_modules")), pinned.bytes);
  }

  async #install(pinned: Pinned, environment: CacheOptions["environment"]): Promise<void> {
    try {
      await makeFolder(this.#folder);
      while (this.findEntry(pinned) === undefined) await this.#advance(pinned, environment);
    } catch (error) {
      if (error instanceof InstallError) throw error;
      throw new InstallError(pinned, this.#folder, faultOf(error));
    }
  }

  async #advance(pinned: Pinned, environment: CacheOptions["environment"]): Promise<void> {
    const lock = this.#lock(pinned);
    const draft = `${this.#target(pinned)}.${String(process.pid)}.draft`;
    if (!(await takeLock(lock, draft))) {
      const holder = await readHolder(lock);
      return (await isHeld(lock, holder)) ? sleep(POLL_MS) : this.#takeOver(pinned, holder);
    }
    try {
      await this.#fetchLocked(pinned, draft, environment);
    } finally {
      await rm(lock, { force: true });
    }
  }

  async #fetchLocked(pinned: Pinned, draft: string, environment: CacheOptions["environment"]): Promise<void> {
    // Checked again, because another server may have finished just before `takeLock`.
    if (this.findEntry(pinned) !== undefined) return;
    try {
      await rm(draft, { recursive: true, force: true });
      await mkdir(draft, { mode: 0o700 });
      const fault = await runNpm(pinned, draft, environment);
      if (fault) throw new InstallError(pinned, this.#folder, fault);
      if (!isComplete(draft, pinned)) throw new InstallError(pinned, this.#folder, INCOMPLETE);
      await this.#publish(pinned, draft);
    } finally {
      await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** Breaks the lock of a dead server. Uses its draft if npm has finished there, and removes the draft. */
  async #takeOver(pinned: Pinned, dead: Holder | undefined): Promise<void> {
    if (!(await breakLock(this.#lock(pinned), dead)) || !dead || !this.#isDraft(dead.folder)) return;
    if (isComplete(dead.folder, pinned)) await this.#publish(pinned, dead.folder);
    await rm(dead.folder, { recursive: true, force: true });
  }

  async #publish(pinned: Pinned, draft: string): Promise<void> {
    const target = this.#target(pinned);
    await rename(draft, target).catch(async () => {
      // If another server was faster, its folder is used.
      if (this.findEntry(pinned) !== undefined) return;
      // Remains of a folder that a cache cleaner has partly deleted block the rename.
      await rm(target, { recursive: true, force: true });
      await rename(draft, target);
    });
    await this.#sweep().catch(() => undefined);
  }

  /** Records the use as the modification time of the folder. */
  async #noteUse(pinned: Pinned): Promise<void> {
    const now = new Date();
    await utimes(this.#target(pinned), now, now).catch(() => undefined);
  }

  /** Removes packages unused for `UNUSED_MS`, and drafts of dead servers. */
  async #sweep(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const unusedMs = Date.now() - (await stat(path)).mtimeMs;
      const [, pid] = /\.(\d+)\.draft$/.exec(name) ?? [];
      const isDead = pid !== undefined && !isAlive(Number(pid)) && unusedMs > MIN_DEAD_MS;
      if (isDead || unusedMs > UNUSED_MS) await rm(path, { recursive: true, force: true });
    }
  }

  #target({ name, version }: Pinned): string {
    return join(this.#folder, `${basename(name)}-${version}`);
  }

  #lock(pinned: Pinned): string {
    return `${this.#target(pinned)}.lock`;
  }

  /**
   * True if `folder` is a draft of this cache. Checked before removal, because other programs of this user can write the lock
   * file.
   */
  #isDraft(folder: string): boolean {
    return folder === join(this.#folder, basename(folder)) && folder.endsWith(".draft");
  }
}

/** Minimum age before a draft of a dead server is removed, ms, because npm may still be writing there. */
const MIN_DEAD_MS = 3_600_000;

const INCOMPLETE: Fault = { code: "EUNKNOWN", text: "npm ended without an error, but has not installed the package" };

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    // Checks an existing ancestor first, because Node reports a read-only disk as a missing folder.
    await access(nearestExisting(folder), constants.W_OK);
    throw error;
  }
}

/** Resolves to the fault that prevents writing to `folder`, which need not exist. */
export async function writeFault(folder: string): Promise<Fault | undefined> {
  // A trailing separator makes a file in place of the folder a fault.
  return access(`${nearestExisting(folder)}${sep}`, constants.W_OK).then(() => undefined, faultOf);
}

function faultOf(error: unknown): Fault {
  const code = error instanceof Error && "code" in error ? String(error.code) : "EUNKNOWN";
  return { code, text: error instanceof Error ? error.message : String(error) };
}

async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(
    files.map(async (file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
