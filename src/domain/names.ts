/** The names that others know this server and its sessions by. */

/** The program and its folders, as package.json has it: a test compares them. */
export const PRODUCT = "claude-agents-mcp";

/**
 * The name before 2026-11. Nothing is made under it, and somebody else's package has it; folders may still carry it, and entries in
 * the configuration of Claude Code.
 */
export const FORMER_PRODUCT = "claude-code-mcp";

/** Variables that the server sets in the environment of every Claude Code it starts; neither is a setting. */

/** How deep a server is nested in sessions of servers like it. */
export const DEPTH_VARIABLE = "CLAUDE_CODE_MCP_DEPTH";

/**
 * Names store, server and process (src/claude/supervise/process-tag.ts) and is inherited by all that a Claude Code starts: shells are
 * found by it when their parent is gone.
 */
export const PROCESS_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/** What a session's process is called in the store; known before the process is, so that whoever takes the session over finds what it left. */
export function processTagOf(sessionId: string, processId: string): string {
  return `${sessionId}:${processId}`;
}

/** That of the first process of a session. */
export function firstProcessTag(sessionId: string): string {
  return processTagOf(sessionId, "1");
}
