import { basename, dirname, resolve } from "node:path";
import { foldedPath } from "./normal-path.ts";
import { isInside, findRealPath } from "./paths.ts";

/**
 * Paths that no session may read or change with file tools, in any permission mode: the server's own files, the code it runs,
 * and the configuration of Claude Code. Claude Code gets deny rules for them (`deny-rules.ts`), and every request, folder and
 * attachment is checked against the table here.
 */

/**
 * Extent of a row:
 * - `tree`: the file or folder and everything below.
 * - `prefix`: the file, and files beside it whose names begin with its name (`-wal`, `.backup`).
 * - `claude`: a Claude configuration folder. A session with this folder may enter the places to which Claude Code sends
 *   sessions.
 * - `checkout`: a tree that is open to sessions working there.
 */
type Extent = "checkout" | "claude" | "prefix" | "tree";

/** Row of the table, before the file system was asked. */
export interface OwnedPath {
  readonly path: string;
  readonly extent: Extent;
  /** Completes "it belongs to ...", for people and for Claude Code. */
  readonly why: string;
}

export interface ProtectedPath extends OwnedPath {
  /** Real path. */
  readonly real: string;
  /** True for the session's own Claude configuration folder: Claude Code itself sends the session to some places inside. */
  readonly isOwn: boolean;
}

/** Properties of a session on which the table depends. */
interface Session {
  readonly cwd: string;
  /** Claude configuration folder of the session's processes. `stateFile` is the record of trust. */
  readonly configFolder: string;
  readonly stateFile: string;
}

/** Adds the real paths to the table, once. For a missing path, the place of its creation counts. */
export async function protectedPaths(owned: readonly OwnedPath[]): Promise<ProtectedPath[]> {
  const rows = await Promise.all(owned.map(resolveRow));
  return rows.filter((row, index) => rows.findIndex((each) => isSame(each, row)) === index);
}

/** Returns the table for a session. */
export async function protectedFor(
  table: readonly ProtectedPath[],
  { configFolder, cwd, stateFile }: Session,
): Promise<ProtectedPath[]> {
  const [own, record, work] = await Promise.all([
    resolveRow({ path: configFolder, extent: "claude", why: CLAUDE_FOLDER }),
    resolveRow({ path: stateFile, extent: "prefix", why: CLAUDE_RECORD }),
    findRealPath(resolve(cwd)),
  ]);
  const checkout = table.find((row) => row.extent === "checkout" && work !== undefined && isInside(work, row.real));
  // Includes packages installed in the checkout. Settings, secrets and stores may lie there too, and stay closed.
  const isAtHome = (row: ProtectedPath) =>
    checkout !== undefined && row.why === SERVER_CODE && isInside(row.real, checkout.real);
  const others = table.filter((row) => row.real !== own.real && !isSame(row, record) && !isAtHome(row));
  return [...others, { ...own, isOwn: true }, record];
}

export const SERVER_CODE = "the programs of this server";
/** Reason for files named by the settings and the system: closed wherever they lie. */
export const STARTED_PROGRAMS = "the programs that this server starts";
export const CLAUDE_FOLDER = "the configuration of Claude Code";
export const CLAUDE_RECORD = "Claude Code's record of projects and trust";

async function resolveRow(row: OwnedPath): Promise<ProtectedPath> {
  const path = resolve(row.path);
  return { ...row, path, real: (await findRealPath(path)) ?? path, isOwn: false };
}

function isSame(one: ProtectedPath, other: ProtectedPath): boolean {
  return one.real === other.real && one.path === other.path && one.extent === other.extent;
}

/** Entries of a configuration folder to which Claude Code sends a session: plans, memory, lists of things to do. */
export const KEPT_BY_CLAUDE = ["agent-memory", "plans", "projects", "tasks", "todos"] as const;

/** Finds the row that covers one of `paths`, absolute paths both as named and as real paths. */
export function findProtection(
  paths: readonly string[],
  table: readonly ProtectedPath[],
  access: "enter" | "read" | "write",
): ProtectedPath | undefined {
  return table.find((row) =>
    paths.some((path) =>
      [row.path, row.real].some((place) => covers(row, foldedPath(place), foldedPath(path), access)),
    ),
  );
}

function covers(row: ProtectedPath, place: string, path: string, access: "enter" | "read" | "write"): boolean {
  if (row.extent === "prefix") return dirname(path) === dirname(place) && basename(path).startsWith(basename(place));
  if (!isInside(path, place)) return false;
  // No session starts in the own folder, and a search of the whole folder would read protected files.
  if (!row.isOwn || access === "enter") return true;
  return !isKept(path.slice(place.length + 1).split(/[\\/]/), access === "write");
}

/**
 * True if Claude Code keeps the file for the session's work. Takes the parts of its path below the own configuration folder.
 */
function isKept([first = "", , third, ...rest]: readonly string[], writes: boolean): boolean {
  if (!KEPT_BY_CLAUDE.some((name) => name === first)) return false;
  if (first !== "projects" || third === undefined) return true;
  if (writes) return third === "memory";
  const isTranscript = [third, ...rest].some((part) => part.endsWith(".jsonl"));
  return !isTranscript && (rest.length > 0 || !third.includes("."));
}
