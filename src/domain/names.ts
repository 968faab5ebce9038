/** The names that others know this server and its sessions by. */

/** The program and its folders, as package.json has it: a test compares them. */
export const PRODUCT = "claude-agents-mcp";

/** The plugin for Claude Code, which reserves names that begin with "claude-". */
export const PLUGIN = "background-agents";

/** As Claude Code names the server that the plugin brings. */
export const PLUGIN_SERVER = `plugin:${PLUGIN}:${PRODUCT}`;

/** Times and limits for tests: src/config/constants.ts. */
export const CONSTANTS_VARIABLE = "CLAUDE_CODE_MCP_CONSTANTS";

/** Variables that the server sets in the environment of every Claude Code it starts; neither is a setting. */

/** How deep a server is nested in sessions of servers like it. */
export const DEPTH_VARIABLE = "CLAUDE_CODE_MCP_DEPTH";

/**
 * Names store, server and process (src/claude/supervise/process-tag.ts) and is inherited by all that a Claude Code starts: shells are
 * found by it when their parent is gone.
 */
export const PROCESS_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/** The id of a session's process in the store; recorded before the start, so that a node that takes the session over finds leftovers. */
export function processTagOf(sessionId: string, processId: string): string {
  return `${sessionId}:${processId}`;
}

/** That of the first process of a session. */
export function firstProcessTag(sessionId: string): string {
  return processTagOf(sessionId, "1");
}
