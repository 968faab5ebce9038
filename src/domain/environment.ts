/** Variables that the server sets in the environment of every Claude Code it starts; neither is a setting. */

/** How deep a server is nested in sessions of servers like it. */
export const DEPTH_VARIABLE = "CLAUDE_CODE_MCP_DEPTH";

/** Unique per Claude Code process and inherited by all that it starts: shells are found by it when their parent is gone. */
export const PROCESS_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";
