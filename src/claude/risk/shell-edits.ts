import { protectionOf, type ProtectedPath } from "../../security/protected-paths.ts";
import { mentionedPaths } from "./mentioned.ts";
import { placesOf, type Folders } from "./places.ts";
import { canRun } from "./risk.ts";

/** What a shell command writes that Claude Code carries out as an edit in acceptEdits, as far as its text shows it. */

/** The programs with which it does so, what writes like them, and redirections. */
const WRITES = /(?<![\w-])(?:cp|dd|install|ln|mkdir|mv|rm|rmdir|sed|tee|touch|truncate)(?![\w-])|>/;

/** As a program it is none of the files of a repository. */
const HEAD = /(?<=(?:^|[\n;&]|(?<!>)\|)\s*)head(?=\s)/g;

export interface ShellEdit {
  /** It may write a file by which a program is made to run commands, or it cannot be told what it writes. */
  readonly canRun: boolean;
  readonly closed: ProtectedPath | undefined;
}

/** Undefined for a command that is no such edit. */
export async function judgeShellEdit(command: string, folders: Folders): Promise<ShellEdit | undefined> {
  if (!WRITES.test(command.replaceAll(/["'\\]/g, ""))) return undefined;
  const paths = await mentionedPaths(command.replaceAll(HEAD, ""), folders);
  if (!paths) return { canRun: true, closed: undefined };
  const { places, refused } = await placesOf(paths, folders);
  return {
    canRun: refused.length > 0 || places.some(canRun),
    closed: protectionOf(paths, folders.closed, "write"),
  };
}
