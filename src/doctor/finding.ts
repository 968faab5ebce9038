import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageRoot } from "../security/owned.ts";
import type { Machine } from "./machine.ts";

/** What a check returns. Ids are part of `--json`: never rename one. */
export interface Finding {
  readonly id: string;
  /** `error`: sessions do not work, or not as intended. */
  readonly level: "ok" | "warning" | "error";
  readonly text: string;
  /** One command that puts it right. */
  readonly fix?: string;
  /** What `--fix` does, where that is safe: resolves to what was done. */
  readonly mend?: () => Promise<string>;
}

export interface Check {
  readonly id: string;
  /** Completes "Checking ...". */
  readonly subject: string;
  /** Time limit, ms. */
  readonly ms: number;
  readonly find: (machine: Machine) => Promise<Finding[]>;
}

/** The command that mends what is safe to mend. */
export const MEND = "claude-agents-mcp doctor --fix";

/** A word for a POSIX shell, or for that of Windows. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./\\-]+$/.test(word)) return word;
  return process.platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

export function counted(number: number, noun: string): string {
  const plural = noun.endsWith("s") ? "es" : "s";
  return `${String(number)} ${noun}${number === 1 ? "" : plural}`;
}

/** The command that brings this program up to date, with all that npm installs with it. */
export function reinstall(root = packageRoot(fileURLToPath(import.meta.url))): string {
  if (!existsSync(join(root, ".git"))) return "npm install -g claude-agents-mcp@latest";
  const prefix = `npm --prefix ${quoted(root)}`;
  return `git -C ${quoted(root)} pull && ${prefix} ci && ${prefix} run build`;
}
