import { homedir } from "node:os";
import { delimiter, resolve } from "node:path";

/** Paths in settings, without a schema: the proxy reads them too, which loads none. */

/** The settings that are paths, by flag and variable, and whether they are lists. A test compares them with the table of settings. */
export const PATH_SETTINGS: readonly PathSetting[] = [
  { flag: "store", variable: "CLAUDE_CODE_MCP_STORE" },
  { flag: "config", variable: "CLAUDE_CODE_MCP_CONFIG" },
  { flag: "allow-dir", variable: "CLAUDE_CODE_MCP_ALLOW_DIRS", isList: true },
  { flag: "trust-dir", variable: "CLAUDE_CODE_MCP_TRUST_DIRS", isList: true },
  { flag: "claude-path", variable: "CLAUDE_CODE_MCP_CLAUDE_PATH" },
  { flag: "audit-log", variable: "CLAUDE_CODE_MCP_AUDIT_LOG" },
  { flag: "token-file", variable: "CLAUDE_CODE_MCP_TOKEN_FILE" },
  { flag: "decide-token-file", variable: "CLAUDE_CODE_MCP_DECIDE_TOKEN_FILE" },
  { flag: "notify-secret-file", variable: "CLAUDE_CODE_MCP_NOTIFY_SECRET_FILE" },
];

export interface PathSetting {
  readonly flag: string;
  readonly variable: string;
  /** Several directories in one variable. */
  readonly isList?: boolean;
}

/** Absolute, a leading ~ being the home folder: by default that of the user of this process. */
export function absolutePath(path: string, base: string, home = homedir()): string {
  return resolve(
    base,
    path.replace(/^~(?=$|[\\/])/, () => home),
  );
}

/** As in PATH; a comma separates too where an absolute path follows it. A folder whose name ends in one takes the flag. */
export function directoriesIn(text: string): string[] {
  return text.split(delimiter).flatMap((part) => part.split(/,(?=[~/\\]|[a-z]:[/\\])/i));
}
