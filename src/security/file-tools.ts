import { isAbsolute, join } from "node:path";
import type { JsonObject } from "../domain/json.ts";

/** Tools of Claude Code that read or edit files, and the paths that a use of them names. Pure. */

const READERS: ReadonlySet<string> = new Set(["Read", "Glob", "Grep", "LS", "NotebookRead"]);
const EDITORS: ReadonlySet<string> = new Set(["Edit", "Write", "MultiEdit", "NotebookEdit"]);

export function isEditor(toolName: string): boolean {
  return EDITORS.has(toolName);
}

export function isFileTool(toolName: string): boolean {
  return READERS.has(toolName) || EDITORS.has(toolName);
}

/** Returns the paths named by a file tool; `undefined` if unknown. */
export function namedPaths(toolName: string, input: JsonObject): string[] | undefined {
  switch (toolName) {
    case "Glob":
      return readGlobFolder(input);
    case "Grep":
    case "LS":
      return input["path"] === undefined ? ["."] : toPathList(input["path"]);
    case "NotebookEdit":
    case "NotebookRead":
      return toPathList(input["notebook_path"]);
    default:
      return toPathList(input["file_path"]);
  }
}

function toPathList(value: unknown): string[] | undefined {
  return typeof value === "string" && value !== "" && !value.includes("\0") ? [value] : undefined;
}

/** Returns `undefined` for `..` behind a wildcard, because the pattern can lead out of its folder. */
function readGlobFolder({ path = ".", pattern }: JsonObject): string[] | undefined {
  const folder = toPathList(path)?.[0];
  if (folder === undefined || typeof pattern !== "string" || pattern.includes("\0")) return undefined;
  const before = pattern.split(/[*?[{(!]/)[0] ?? "";
  if (pattern.slice(before.length).includes("..")) return undefined;
  const start = before.slice(0, before.lastIndexOf("/") + 1);
  if (start === "") return [folder];
  // Claude Code trims `folder` before the pattern follows.
  return [isAbsolute(start) || start.startsWith("~") ? start : join(folder.trim(), start)];
}
