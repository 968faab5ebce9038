import { homedir } from "node:os";
import { join } from "node:path";
import { DEPTH_VARIABLE, PROCESS_VARIABLE } from "../domain/environment.ts";

/** Of an outer Claude Code session: a child that inherits them takes itself for a part of that session. */
const OF_THE_OUTER_SESSION = [
  "CLAUDECODE",
  "CLAUDE_CODE_ENTRYPOINT",
  "CLAUDE_CODE_SSE_PORT",
  "CLAUDE_CODE_SESSION_ID",
  "CLAUDE_PROJECT_DIR",
];

/** Settings of the query toolset (seed 003): ours, not Claude Code's. */
const OF_THE_QUERY_TOOLSET = [
  "CLAUDE_CODE_ENABLE",
  "CLAUDE_CODE_DEFAULT_CWD",
  "CLAUDE_CODE_DEFAULT_MODEL",
  "CLAUDE_CODE_DEFAULT_PERMISSION_MODE",
  "CLAUDE_CODE_MAX_TURNS",
  "CLAUDE_CODE_MAX_MESSAGES",
  "CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES",
  "CLAUDE_CODE_ALLOWED_TOOLS",
  "CLAUDE_CODE_MAX_EXECUTION_TIME",
];

const DROPPED = new Set([...OF_THE_OUTER_SESSION, ...OF_THE_QUERY_TOOLSET]);

export interface Child {
  /** How deep the server itself is nested. */
  depth: number;
  /** The mark of the process, see PROCESS_VARIABLE. */
  mark: string;
  /** The Claude configuration folder, if not the server's own. */
  configDir?: string | undefined;
  /** What the caller adds. */
  added?: Record<string, string>;
}

/**
 * The environment of a Claude Code process: the server's own, without what belongs to the server (an agent's shell
 * must not read our secrets) or to an outer session, and with `added` on top.
 */
export function childEnvironment(
  own: NodeJS.ProcessEnv,
  { added, configDir, depth, mark }: Child,
): Record<string, string> {
  const kept = Object.entries(own).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !DROPPED.has(entry[0]) && !entry[0].startsWith("CLAUDE_CODE_MCP_"),
  );
  return {
    // A stdio MCP server that never answers would hold up the first turn for 30 s.
    MCP_TIMEOUT: "10000",
    ...Object.fromEntries(kept),
    ...(configDir !== undefined && { CLAUDE_CONFIG_DIR: configDir }),
    ...added,
    [DEPTH_VARIABLE]: String(depth + 1),
    [PROCESS_VARIABLE]: mark,
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1",
    CLAUDE_AGENT_SDK_CLIENT_APP: "claude-code-mcp",
  };
}

/** Where Claude Code keeps settings, transcripts and its record of trust, for a process with this environment. */
export function configFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return environment["CLAUDE_CONFIG_DIR"] ?? join(environment["HOME"] ?? homedir(), ".claude");
}

/** The file beside it that holds projects and their trust. */
export function stateFile(environment: Readonly<Record<string, string | undefined>>): string {
  const folder = environment["CLAUDE_CONFIG_DIR"] ?? environment["HOME"] ?? homedir();
  return join(folder, ".claude.json");
}
