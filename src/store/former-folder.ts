import { existsSync } from "node:fs";
import { readdir, realpath, rename, rmdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { STORE_FILE } from "../config/store.ts";
import type { Logger } from "../engine/ports.ts";
import { isBusy, openDatabase, type Database } from "./sqlite/connect/driver.ts";
import { HOST, type Self } from "./node.ts";

/**
 * The state folder had another name. The first server moves it with its content, and leaves a link for servers of older versions
 * and for recorded paths. While a server has the store open nothing is moved: all use it in its place, and the next start tries
 * again. So there is one store at any time.
 */

export interface Folders {
  readonly present: string;
  readonly former: string;
}

interface Dependencies {
  readonly isRunning: Self["isRunning"];
  readonly log: Pick<Logger, "warn">;
}

/** How long to retry while another process may be moving the folder, ms. */
const BUSY_RETRY_MS = 10_000;
/** How long to retry while another process has the store open, ms. A server that starts opens it only for this check. */
const OPEN_RETRY_MS = 500;
/** Between two attempts, ms, without the jitter. */
const RETRY_DELAY_MS = 20;

/** Resolves to the folder that is to be used. */
export async function settledFolder(folders: Folders, dependencies: Dependencies): Promise<string> {
  const { former, present } = folders;
  const begin = performance.now();
  while (former !== present && (await isLeftBehind(folders))) {
    const outcome = await move(folders, dependencies);
    if (outcome === "moved") break;
    if (performance.now() - begin < outcome.retryMs) {
      // With jitter, so that two servers that start together do not find the store open by each other every time.
      await sleep(RETRY_DELAY_MS * (1 + Math.random()));
      continue;
    }
    const { reason } = outcome;
    dependencies.log.warn("the state folder keeps its former name, and is used there", { folder: former, reason });
    return former;
  }
  if (await isOther(folders)) {
    const advice = "Sessions in it are not listed: end its servers and name its store with --store to see them.";
    dependencies.log.warn("there is a store in the folder of the former name, too", {
      folder: former,
      used: present,
      advice,
    });
  }
  return present;
}

/** Where there are both, the present one counts. */
async function isLeftBehind({ former, present }: Folders): Promise<boolean> {
  if (existsSync(join(present, STORE_FILE))) return false;
  return existsSync(join(former, STORE_FILE)) || ((await isEmpty(present)) && !(await isEmpty(former)));
}

async function isEmpty(folder: string): Promise<boolean> {
  const found = await readdir(folder).catch(() => []);
  return found.length === 0;
}

async function isOther({ former, present }: Folders): Promise<boolean> {
  if (former === present || !existsSync(join(former, STORE_FILE))) return false;
  return (await realpath(former)) !== (await realpath(present).catch(() => present));
}

interface NotMoved {
  readonly reason: string;
  /** How long to retry, ms from the first attempt. */
  readonly retryMs: number;
}

type Outcome = "moved" | NotMoved;

/** Another process is moving the folder, or may be. */
const BUSY: NotMoved = { reason: "another process has locked the store", retryMs: BUSY_RETRY_MS };
const OPEN: NotMoved = { reason: "a server that runs has the store open", retryMs: OPEN_RETRY_MS };

async function move(folders: Folders, dependencies: Dependencies): Promise<Outcome> {
  const file = join(folders.former, STORE_FILE);
  if (!existsSync(file)) return renamed(folders, dependencies);
  try {
    const database = await openDatabase(file);
    let outcome: Outcome | undefined;
    try {
      outcome = isAlone(database) ? await moveHeld(folders, database, dependencies) : await whyNot(file);
    } finally {
      database.close();
    }
    return outcome ?? (await renamed(folders, dependencies));
  } catch (error) {
    return isBusy(error) ? BUSY : notMoved(folders, error);
  }
}

/** While no other process can open it. Undefined on Windows, where an open file and its folder cannot be moved. */
async function moveHeld(
  folders: Folders,
  database: Database,
  dependencies: Dependencies,
): Promise<Outcome | undefined> {
  const user = await userOf(database, dependencies);
  if (user !== undefined) return { reason: `the server with pid ${String(user)} uses it`, retryMs: 0 };
  // Another server may have moved it before this one had the lock.
  if (!(await isLeftBehind(folders))) return "moved";
  return process.platform === "win32" ? undefined : renamed(folders, dependencies);
}

async function whyNot(file: string): Promise<Outcome> {
  return (await isRead(file)) ? OPEN : BUSY;
}

/** Whether no other process has it open; then none can open it until this connection is closed. */
function isAlone(database: Database): boolean {
  database.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE");
  try {
    database.exec("BEGIN EXCLUSIVE; COMMIT");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

/** Not readable while another server moves it. */
async function isRead(file: string): Promise<boolean> {
  const database = await openDatabase(file);
  try {
    database.exec("PRAGMA busy_timeout = 0; SELECT count(*) FROM sqlite_master");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  } finally {
    database.close();
  }
}

/** Without a write-ahead log a server at rest holds no lock, so the servers that are written down in it are looked at. */
async function userOf(database: Database, { isRunning }: Dependencies): Promise<number | undefined> {
  for (const { expiresAt, host, pid, startedAt } of nodesOf(database)) {
    const lives = host === HOST ? await isRunning(pid, startedAt) : expiresAt > Date.now();
    if (lives) return pid;
  }
  return undefined;
}

const Node = z.object({ host: z.string(), pid: z.int(), startedAt: z.string(), expiresAt: z.int() });

/** Through a function: with one of the drivers a statement would hold the lock for a while after the database is closed. */
function nodesOf(database: Database): z.infer<typeof Node>[] {
  const nodes: z.infer<typeof Node>[] = [];
  database.function("found", (host, pid, startedAt, expiresAt) => {
    nodes.push(Node.parse({ host, pid, startedAt, expiresAt }));
    return null;
  });
  try {
    database.exec("SELECT found(host, pid, started_at, expires_at) FROM nodes");
  } catch (error) {
    // Its maker was killed before it had made the tables.
    if (!String(error).includes("no such table: nodes")) throw error;
  }
  return nodes;
}

/** After an error, which is none if another process has moved the folder meanwhile. */
async function notMoved(folders: Folders, error: unknown): Promise<NotMoved> {
  return (await isLeftBehind(folders)) ? { reason: String(error), retryMs: 0 } : BUSY;
}

/** A folder and a link to one are renamed alike, with what leads from them: they stay where they were. */
async function renamed({ former, present }: Folders, { log }: Dependencies): Promise<Outcome> {
  try {
    // An empty one is in the way on some systems.
    await rmdir(present).catch(() => undefined);
    await rename(former, present);
  } catch (error) {
    return notMoved({ former, present }, error);
  }
  const link = await symlink(basename(present), former, "junction").then(
    () => former,
    (error: unknown) => `none: ${String(error)}`,
  );
  log.warn("the state folder was moved to its new name, this once", { from: former, to: present, link });
  return "moved";
}
