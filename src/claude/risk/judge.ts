import type { PermissionRequest } from "../../domain/permission.ts";
import { isEditor, isFileTool, namedPaths } from "../../security/file-tools.ts";
import { findProtection, type ProtectedPath } from "../../security/protected-paths.ts";
import { findPossiblePaths, findMentionedPaths } from "./mentioned-paths.ts";
import { locatePaths, type Folders } from "./named-paths.ts";
import { isSessionTool, isShell, OUTSIDE, rateRisk, canRunCommands } from "./risk.ts";
/** Facts about a request, gathered before its decision. */
type Judged = Pick<PermissionRequest, "cwd" | "paths" | "refused" | "risk">;

export async function judgeRequest(request: PermissionRequest, folders: Folders): Promise<Judged> {
  const { blockedPath, input, toolName } = request;
  const isForFiles = isFileTool(toolName);
  const named = isForFiles ? namedPaths(toolName, input) : [];
  // Includes the path that Claude Code itself objects to.
  const all = [...(named ?? []), ...(blockedPath === undefined ? [] : [blockedPath])];
  const { cwd, places, refused } = await locatePaths(all, folders);
  const paths = [...new Set(places.flatMap(({ named: path, real = path }) => [path, real]))];
  const arePlacesKnown = named !== undefined && refused.length === 0;
  const risk = rateRisk({ toolName, input, places: arePlacesKnown ? places : undefined });
  const isOutside = !isForFiles && places.some(({ isInside }) => !isInside);
  const problem = await findProblem(request, paths, folders);
  return {
    risk: isOutside ? { level: "all", why: [...risk.why, OUTSIDE] } : risk,
    ...(isForFiles && refused[0] !== undefined && { refused: notNormalText(refused[0]) }),
    ...(problem !== undefined && { refused: problem }),
    ...(paths.length > 0 && { paths }),
    ...(cwd !== folders.cwd && { cwd }),
  };
}

/** Returns the reason why no session may do this. For a tool with unknown path fields, any string may be a path. */
async function findProblem({ input, toolName }: PermissionRequest, paths: readonly string[], folders: Folders) {
  const isForFiles = isFileTool(toolName);
  const hasKnownPaths = isForFiles || isShell(toolName) || isSessionTool(toolName);
  const others = hasKnownPaths ? [] : await findPossiblePaths(input, folders);
  if (!others) return TOO_MANY;
  const access = isForFiles && !isEditor(toolName) ? "read" : "write";
  const closed = findProtection([...paths, ...others], folders.closed, access);
  return closed && closedText(closed);
}

const TOO_MANY = "Its input has too many strings to check them against protected paths. Call the tool with fewer.";

export function closedText({ path, why }: ProtectedPath): string {
  return `No session may reach ${path}: it belongs to ${why}. It cannot be allowed here; do without it.`;
}

function notNormalText(path: string): string {
  const shown = JSON.stringify(path.slice(0, 200));
  return `The path ${shown} ends in white space, or is empty, once it is resolved, and can mean another file. Name the file without it.`;
}

/** Judges a shell command that Claude Code runs as an edit in `acceptEdits`, as far as the text shows. */

/** Programs treated as edits, programs that write like them, and redirections. */
const WRITES = /(?<![\w-])(?:cp|dd|install|ln|mkdir|mv|rm|rmdir|sed|tee|touch|truncate)(?![\w-])|>/;

/** `head` as a program, not `HEAD` as a file of a repository. */
const HEAD = /(?<=(?:^|[\n;&]|(?<!>)\|)\s*)head(?=\s)/g;

interface ShellEdit {
  /** True if the command may write a file that makes a program run commands, or if its targets are unknown. */
  readonly canRun: boolean;
  readonly closed: ProtectedPath | undefined;
}

/** `undefined` for a command without such an edit. */
export async function judgeShellEdit(command: string, folders: Folders): Promise<ShellEdit | undefined> {
  if (!WRITES.test(command.replaceAll(/["'\\]/g, ""))) return undefined;
  const paths = await findMentionedPaths(command.replaceAll(HEAD, ""), folders);
  if (!paths) return { canRun: true, closed: undefined };
  const { places, refused } = await locatePaths(paths, folders);
  return {
    canRun: refused.length > 0 || places.some(canRunCommands),
    closed: findProtection(paths, folders.closed, "write"),
  };
}
