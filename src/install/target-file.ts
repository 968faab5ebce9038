import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, mkdir, open, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { isInside, findRealPath } from "../security/paths.ts";
import { PRINTED, UnusableFile } from "./format.ts";

/** File of a client on disk. Replaced as a whole, and only if unchanged since it was read. */
export interface TargetFile {
  /** Real path, so that a link remains a link. */
  readonly path: string;
  /** Text without byte order mark; `undefined` without a file. */
  readonly text: string | undefined;
  readonly mark: string;
  /** Permission bits, also of a new file. */
  readonly mode: number;
}

const MARK = "\uFEFF";

/** Reads a client's file. Links may lead only to places in `within`. Throws UnusableFile. */
export async function readTarget(file: string, within: readonly string[], newMode: number): Promise<TargetFile> {
  const path = await findRealPath(file);
  if (path === undefined)
    throw new UnusableFile(
      "cannot be reached: part of its path is not a folder, leads to itself, or is not readable. Fix it first.",
    );
  const roots = await Promise.all(within.map(async (root) => findRealPath(root)));
  if (!roots.some((root) => root !== undefined && isInside(path, root))) {
    throw new UnusableFile(`is a link to ${path}, outside of ${within[0] ?? ""}. Edit that file by hand: ${PRINTED}.`);
  }
  const found = await stat(path).catch(undefinedIfMissing);
  if (found === undefined) {
    const link = await lstat(file).catch(undefinedIfMissing);
    if (link)
      throw new UnusableFile(`is a link to ${path}, which does not exist. Remove the link, or create that file.`);
    return { path, text: undefined, mark: "", mode: newMode };
  }
  refuseUnwritable(found);
  const decoded = decode(await readFile(path));
  const mark = decoded.startsWith(MARK) ? MARK : "";
  return { path, text: decoded.slice(mark.length), mark, mode: found.mode & 0o7777 };
}

/** Returns text without byte order mark; `undefined` without a file. Throws UnusableFile. */
export async function readText(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(undefinedIfMissing);
  if (found === undefined) return undefined;
  refuseUnreadable(found);
  const decoded = decode(await readFile(file));
  return decoded.startsWith(MARK) ? decoded.slice(MARK.length) : decoded;
}

function refuseUnwritable(found: Stats): void {
  refuseUnreadable(found);
  // Checks mode bits, because root could write even a read-only file. Checks the owner, because a replaced file belongs to the
  // user.
  if ((found.mode & 0o200) === 0)
    throw new UnusableFile(`is read-only. Make it writable, or edit it by hand: ${PRINTED}.`);
  if (process.geteuid !== undefined && found.uid !== process.geteuid()) {
    throw new UnusableFile(`belongs to another user. Run this as that user, or edit it by hand: ${PRINTED}.`);
  }
}

/** Bytes. Known files have tens of megabytes: Claude Code keeps pasted texts in its own. */
const MAX_BYTES = 64 * 1024 * 1024;

function refuseUnreadable(found: Stats): void {
  if (!found.isFile()) throw new UnusableFile("is not a regular file. Move it away first.");
  if (found.size > MAX_BYTES) throw new UnusableFile(`is larger than 64 MiB. Edit it by hand: ${PRINTED}.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UnusableFile("is not UTF-8. Save it as UTF-8 first.");
  }
}

/** Creates the folders of a file. Resolves to the created folders, deepest first. */
export async function makeFolders({ path }: TargetFile): Promise<string[]> {
  const folder = dirname(path);
  const first = await mkdir(folder, { recursive: true });
  return first === undefined ? [] : foldersFrom(first, folder);
}

/** Removes empty folders. */
export async function removeFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await rmdir(folder).catch(() => undefined);
}

/** Throws UnusableFile if the file has changed meanwhile. */
export async function writeTarget(target: TargetFile, text: string): Promise<void> {
  const draft = `${target.path}.${randomBytes(6).toString("hex")}`;
  const handle = await open(draft, "wx", target.mode);
  try {
    await handle.writeFile(target.mark + text);
    // `open` reduces the mode by the umask.
    if (target.text !== undefined) await handle.chmod(target.mode);
    await handle.sync();
    await handle.close();
    await refuseChanged(target);
    await rename(draft, target.path);
  } finally {
    await handle.close();
    await rm(draft, { force: true });
  }
}

function foldersFrom(first: string, last: string): string[] {
  return last === first || dirname(last) === last ? [last] : [last, ...foldersFrom(first, dirname(last))];
}

/** Deletes the file, and those of `folders` that become empty. */
export async function removeTarget(target: TargetFile, folders: readonly string[]): Promise<void> {
  await refuseChanged(target);
  await rm(target.path);
  await removeFolders(folders);
}

async function refuseChanged({ mark, path, text }: TargetFile): Promise<void> {
  const now = await readFile(path, "utf8").catch(undefinedIfMissing);
  if (now !== (text === undefined ? undefined : mark + text)) {
    throw new UnusableFile("was changed by another program in the meantime. Nothing was written: try again.");
  }
}

function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}
