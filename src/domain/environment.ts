/** Variables that the server sets in the environment of every Claude Code it starts; neither is a setting. */

/** How deep a server is nested in sessions of servers like it. */
export const DEPTH_VARIABLE = "CLAUDE_CODE_MCP_DEPTH";

/** Unique per Claude Code process and inherited by all that it starts: shells are found by it when their parent is gone. */
export const PROCESS_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/** The value of PROCESS_VARIABLE for a session's process; known before the process is, so that whoever takes the session over finds what it left. */
export function markOf(sessionId: string, processId: string): string {
  return `${sessionId}:${processId}`;
}

/** That of the first process of a session. */
export function firstMark(sessionId: string): string {
  return markOf(sessionId, "1");
}
