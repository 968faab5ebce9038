/** Names of this server and its sessions for other programs. */

/** Name of the program and of its folders. Must equal the name in package.json; a test compares both. */
export const PRODUCT = "claude-agents-mcp";

/** Name of the plugin for Claude Code, which reserves names that begin with `claude-`. */
export const PLUGIN = "background-agents";

/** Claude Code's name for the server in the plugin. */
export const PLUGIN_SERVER = `plugin:${PLUGIN}:${PRODUCT}`;

/** Variable with times and limits for tests, see `src/config/constants.ts`. */
export const CONSTANTS_VARIABLE = "CLAUDE_CODE_MCP_CONSTANTS";

/** Variables that the server sets in the environment of every Claude Code. Neither is a setting. */

/** Nesting depth of this server in sessions of servers like it. */
export const DEPTH_VARIABLE = "CLAUDE_CODE_MCP_DEPTH";

/**
 * Variable that names store, server and process (`src/claude/supervise/process-tag.ts`). Every descendant of a Claude Code
 * inherits the variable, so that shells are found even after their parent is gone.
 */
export const PROCESS_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/**
 * Returns the id of a session's process in the store. Recorded before the start, so that a node that takes over the session
 * finds leftover processes.
 */
export function processTagOf(sessionId: string, processId: string): string {
  return `${sessionId}:${processId}`;
}

export function firstProcessTag(sessionId: string): string {
  return processTagOf(sessionId, "1");
}
