import type { ToolName } from "./listed.ts";

/** What a client tells its model of the server as a whole: how the tools that it lists go together. */

const AGENT = `Runs Claude Code as a background agent that outlives the call.
1. claude_code starts it on a task (set waitMs to wait for the result of a short one).
2. claude_code_check with the sessionId and nextCursor waits for news: its output, requests in actions[], the result.
3. Answer each of actions[] with claude_code_check, action respond_permission; that waits for the next news as well.
4. claude_code_reply sends the next prompt. claude_code_session lists and cancels.
More to read: claude-code://quickstart, permissions, errors, options.`;

const QUERY = "claude_code_query runs one task to its end and returns its messages.";

const CHAT =
  "claude_session_create opens a conversation with Claude Code, claude_chat_query talks in it, claude_session_close ends it; claude_direct_query does all three.";

const PARTS: readonly (readonly [tool: ToolName, text: string])[] = [
  ["claude_code", AGENT],
  ["claude_code_query", QUERY],
  ["claude_chat_query", CHAT],
];

export function instructionsFor(listed: readonly ToolName[]): string {
  return PARTS.flatMap(([tool, text]) => (listed.includes(tool) ? [text] : [])).join("\n");
}
