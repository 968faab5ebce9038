import { lstat, otherwise, realpath } from "./files/limited.ts";
import { isExecuting } from "./executing-files.ts";
import { findWorkTrees } from "./git/repository.ts";
import { foldedPath, hasUnseen } from "./normal-path.ts";
import { isInside, findRealPath } from "./paths.ts";
import type { ProtectedPath } from "./protected-paths.ts";

/**
 * Files that Claude Code keeps for itself and writes unasked: plans, and memory of the project and of its agents. No program
 * runs these files, although other files in their folders are run. Claude Code decides which of them a session may write.
 */

interface Session {
  readonly cwd: string;
  /** Table of protected paths for the session. */
  readonly closed: readonly ProtectedPath[];
}

/** True if `path` is a file that Claude Code keeps for itself, both as named and as resolved. */
export async function isKeptByClaude(path: string, { closed, cwd }: Session): Promise<boolean> {
  const own = closed.find(({ isOwn }) => isOwn);
  const [real, work] = await Promise.all([findRealPath(path), realpath(cwd).catch(otherwise(undefined))]);
  if (own === undefined || real === undefined || work === undefined || hasUnseen(path)) return false;
  const projects = new Set([cwd, work, ...(await findWorkTrees(work))].map(projectName));
  const named = [own.path, own.real].some((folder) => isKeptIn(folder, path, projects));
  const isKept =
    (named && isKeptIn(own.real, real, projects)) ||
    ([cwd, work].some((folder) => isKeptInProject(folder, path)) && isKeptInProject(work, real));
  return isKept && (await hasOneName(real));
}

/** True for a file with one name, or a missing file. A second hard link may lie in a folder from which files are run. */
async function hasOneName(path: string): Promise<boolean> {
  try {
    const found = await lstat(path);
    return found.isFile() && found.nlink === 1;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT";
  }
}

/** True for a file kept in the configuration folder `folder`. */
function isKeptIn(folder: string, path: string, projects: ReadonlySet<string>): boolean {
  const [first, ...rest] = partsBelow(folder, path);
  if (first === "plans") return rest.length === 1 && isNote(rest);
  if (first === "agent-memory") return rest.length > 1 && isNote(rest);
  const [project = "", memory, ...below] = rest;
  return first === "projects" && projects.has(project) && memory === "memory" && isNote(below);
}

/**
 * True for a file that Claude Code keeps in the session's folder: plans in the usual `plansDirectory`, memory of the project's
 * agents.
 */
function isKeptInProject(folder: string, path: string): boolean {
  const [first, second, ...rest] = partsBelow(folder, path);
  if (first !== ".claude") return false;
  if (second === "plans") return rest.length === 1 && isNote(rest);
  return (second === "agent-memory" || second === "agent-memory-local") && rest.length > 1 && isNote(rest);
}

function partsBelow(folder: string, path: string): string[] {
  return isInside(path, folder)
    ? path
        .slice(folder.length)
        .split(/[\\/]/)
        .filter((part) => part !== "")
    : [];
}

/** True for a Markdown file that no program reads as instructions by itself. */
function isNote(way: readonly string[]): boolean {
  const name = way.at(-1) ?? "";
  return name.endsWith(".md") && !INSTRUCTION_FILES.has(foldedPath(name)) && !isExecuting(`/${way.join("/")}`);
}

const INSTRUCTION_FILES: ReadonlySet<string> = new Set([
  "agents.md",
  "claude.local.md",
  "claude.md",
  "gemini.md",
  "skill.md",
]);

/**
 * Maximum length of a project name. Claude Code ends longer names in a hash, so that a write to the project's memory needs
 * approval.
 */
const MAX_NAME = 200;

function projectName(folder: string): string {
  const name = plainName(folder);
  return name.length > MAX_NAME ? "" : name;
}

const plainName = (folder: string) => folder.replaceAll(/[^a-zA-Z0-9]/g, "-");

/** Returns the name of the folder in which Claude Code keeps the conversations of the project `folder`, a real path. */
export function conversationsFolder(folder: string): string {
  const name = plainName(folder);
  if (name.length <= MAX_NAME) return name;
  let hash = 0;
  for (let at = 0; at < folder.length; at += 1) hash = ((hash << 5) - hash + folder.charCodeAt(at)) | 0;
  return `${name.slice(0, MAX_NAME)}-${Math.abs(hash).toString(36)}`;
}
