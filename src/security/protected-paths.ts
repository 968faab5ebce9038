import { basename, dirname, resolve } from "node:path";
import { foldedPath } from "./normal-path.ts";
import { isInside, realPathOf } from "./paths.ts";

/**
 * What no session may read or change with file tools, in any permission mode: the server's own files, the code it runs, and
 * the configuration of Claude Code. Claude Code is given deny rules for them (deny-rules.ts), and every request, folder and
 * attachment is checked against the same table here.
 */

/**
 * `tree`: the file or folder and all below it. `prefix`: this file and those beside it whose names begin the same (`-wal`,
 * `.backup`). `claude`: a Claude configuration folder, which a session that uses it may enter where Claude Code sends it.
 * `checkout`: a tree that is open to a session that works in it.
 */
type Extent = "checkout" | "claude" | "prefix" | "tree";

/** A row of the table before the file system was asked. */
export interface Owned {
  readonly path: string;
  readonly extent: Extent;
  /** Completes "it belongs to ...", for people and for Claude Code. */
  readonly why: string;
}

export interface ProtectedPath extends Owned {
  /** As it really lies. */
  readonly real: string;
  /** The session's own Claude configuration folder: Claude Code itself sends the session to some places in it. */
  readonly isOwn: boolean;
}

/** What a session is, as far as the table depends on it. */
interface Session {
  readonly cwd: string;
  /** The Claude configuration folder of its processes, and the record of trust. */
  readonly configFolder: string;
  readonly stateFile: string;
}

/** The table with real paths. Made once; a path that does not exist yet counts as where it would be made. */
export async function protectedPaths(owned: readonly Owned[]): Promise<ProtectedPath[]> {
  const rows = await Promise.all(owned.map(resolved));
  return rows.filter((row, index) => rows.findIndex((each) => isSame(each, row)) === index);
}

/** The table as it holds for a session. */
export async function protectedFor(
  table: readonly ProtectedPath[],
  { configFolder, cwd, stateFile }: Session,
): Promise<ProtectedPath[]> {
  const [own, record, work] = await Promise.all([
    resolved({ path: configFolder, extent: "claude", why: CLAUDE_FOLDER }),
    resolved({ path: stateFile, extent: "prefix", why: CLAUDE_RECORD }),
    realPathOf(resolve(cwd)),
  ]);
  const checkout = table.find((row) => row.extent === "checkout" && work !== undefined && isInside(work, row.real));
  // With the packages that were installed in it; settings, secrets and stores may lie there too, and stay closed.
  const isAtHome = (row: ProtectedPath) =>
    checkout !== undefined && row.why === SERVER_CODE && isInside(row.real, checkout.real);
  const others = table.filter((row) => row.real !== own.real && !isSame(row, record) && !isAtHome(row));
  return [...others, { ...own, isOwn: true }, record];
}

export const SERVER_CODE = "the programs of this server";
export const CLAUDE_FOLDER = "the configuration of Claude Code";
export const CLAUDE_RECORD = "Claude Code's record of projects and trust";

async function resolved(row: Owned): Promise<ProtectedPath> {
  const path = resolve(row.path);
  return { ...row, path, real: (await realPathOf(path)) ?? path, isOwn: false };
}

function isSame(one: ProtectedPath, other: ProtectedPath): boolean {
  return one.real === other.real && one.path === other.path && one.extent === other.extent;
}

/** Where in its own configuration folder Claude Code sends a session: its plans, its memory, its lists of things to do. */
export const KEPT_BY_CLAUDE = ["agent-memory", "plans", "projects", "tasks", "todos"] as const;

/** The row that covers one of these absolute paths, given both as named and as they really are. */
export function protectionOf(
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
  // No session starts in there, and a search of all of it would read protected files.
  if (!row.isOwn || access === "enter") return true;
  return !isKept(path.slice(place.length + 1).split(/[\\/]/), access === "write");
}

/** Of the parts of a way below the own configuration folder: whether Claude Code keeps there what the session works with. */
function isKept([first = "", , third, ...rest]: readonly string[], writes: boolean): boolean {
  if (!KEPT_BY_CLAUDE.some((name) => name === first)) return false;
  if (first !== "projects" || third === undefined) return true;
  if (writes) return third === "memory";
  const isTranscript = [third, ...rest].some((part) => part.endsWith(".jsonl"));
  return !isTranscript && (rest.length > 0 || !third.includes("."));
}
