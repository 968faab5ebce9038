import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "../install/ssh/host.ts";
import { packageRoot } from "../security/installation-paths.ts";
import type { Machine } from "./machine.ts";

/** Result of a check. Never rename an `id`: scripts read it in `--json`. */
export interface Finding {
  readonly id: string;
  /** `error`: sessions do not work, or not as intended. */
  readonly level: "ok" | "warning" | "error";
  readonly text: string;
  /** A single command to fix the problem. */
  readonly fix?: string;
  /** Action of `--fix`, only if safe. Resolves to a sentence about the change. */
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

/** Command to run all safe fixes. */
export const FIX_COMMAND = "claude-agents-mcp doctor --fix";

/** Quotes a word for a POSIX shell, or for the shell of Windows. */
export function quoted(word: string): string {
  if (process.platform !== "win32") return shellWord(word);
  return /^[\w@%+=:,./\\-]+$/.test(word) ? word : `"${word}"`;
}

export function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

export function counted(number: number, noun: string): string {
  const plural = noun.endsWith("s") ? "es" : "s";
  return `${String(number)} ${noun}${number === 1 ? "" : plural}`;
}

/** Returns the command to update this program, with all packages installed by npm. */
export function reinstall(root = packageRoot(fileURLToPath(import.meta.url))): string {
  if (!existsSync(join(root, ".git"))) return "npm install -g claude-agents-mcp@latest";
  const prefix = `npm --prefix ${quoted(root)}`;
  return `git -C ${quoted(root)} pull && ${prefix} ci && ${prefix} run build`;
}
