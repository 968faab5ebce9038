import { link, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { startTime } from "../claude/supervise/tree.ts";
import { NPM_MS, npmRuns } from "./npm.ts";

/** One server at a time installs a package; the others wait. The lock is a file that names its holder. */

const Holder = z.object({ pid: z.int(), startedAt: z.string(), folder: z.string() });
/** `folder` is where it installs. */
export type Holder = z.infer<typeof Holder>;

/** The holder writes the file in one go, at once after it has made it, ms. */
const WRITTEN_MS = 5_000;
/** A holder has ended its npm by then, unless it is frozen itself, ms. */
const HELD_MS = NPM_MS + 300_000;
const MOST_BYTES = 10_000;

/** Whether this process has the lock now. */
export async function takeLock(file: string, folder: string): Promise<boolean> {
  const holder: Holder = { pid: process.pid, startedAt: (await startTime(process.pid)) ?? "", folder };
  try {
    await writeFile(file, JSON.stringify(holder), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** Who has it; undefined where no server has, or the file does not say. */
export async function holderOf(file: string): Promise<Holder | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  try {
    return Holder.parse(JSON.parse(text.slice(0, MOST_BYTES)));
  } catch {
    return undefined;
  }
}

/** Whether the holder that the file named still installs: the server, or the npm that it has left behind. */
export async function isHeld(file: string, holder: Holder | undefined): Promise<boolean> {
  const about = await stat(file).catch(() => undefined);
  if (about === undefined || Date.now() - about.mtimeMs > (holder ? HELD_MS : WRITTEN_MS)) return false;
  return !holder || (await startTime(holder.pid)) === holder.startedAt || npmRuns(holder.folder);
}

/** Removes the lock of a dead holder. False where another server was faster. If two install at once, the folder of one is used. */
export async function breakLock(file: string, dead: Holder | undefined): Promise<boolean> {
  const broken = `${file}.${String(process.pid)}`;
  try {
    await rename(file, broken);
  } catch {
    return false;
  }
  const isOfDead = isDeepStrictEqual(await holderOf(broken), dead);
  // Since it was read, another server has broken and taken it.
  if (!isOfDead) await link(broken, file).catch(() => undefined);
  await rm(broken, { force: true }).catch(() => undefined);
  return isOfDead;
}
