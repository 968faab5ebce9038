/**
 * Names of the tools listed by a server. `initialize` needs only the names; the tools with their schemas are loaded after its
 * answer (`toolsets.ts`).
 */

const TOOLSETS = {
  /** Background sessions, in as few tools as possible. */
  agent: ["claude_code", "claude_code_reply", "claude_code_check", "claude_code_session"],
  /** Single blocking call; returns every message. */
  query: ["claude_code_query"],
  /** A conversation held open, with streamed text. */
  chat: [
    "claude_session_create",
    "claude_session_close",
    "claude_chat_query",
    "claude_chat_interrupt",
    "claude_chat_model",
    "claude_chat_mode",
    "claude_direct_query",
  ],
  /** Switch for the bypass gate. */
  configure: ["claude_code_configure"],
} as const;

export type Toolset = keyof typeof TOOLSETS;
export type ToolName = (typeof TOOLSETS)[Toolset][number];

const ALL: readonly Toolset[] = ["agent", "query", "chat", "configure"];

/** True for tools of the toolset `agent`. */
export const isAgentTool = (name: string): boolean => TOOLSETS.agent.some((each) => each === name);

/** Returns the names in the order of `TOOLSETS`, in any order of `toolsets`. */
export function listToolNames(
  toolsets: readonly (Toolset | "all")[],
  query: { readonly enabled: boolean },
): ToolName[] {
  const listed = ALL.filter((toolset) => toolsets.includes(toolset) || toolsets.includes("all"));
  return listed.flatMap((toolset) => (toolset === "query" && !query.enabled ? [] : TOOLSETS[toolset]));
}

/** Tools that send log notifications while they block. */
const LOGGING_TOOLS: readonly ToolName[] = [
  "claude_code",
  "claude_code_reply",
  "claude_code_check",
  "claude_code_query",
  "claude_chat_query",
  "claude_direct_query",
];

export const sendsLogs = (name: ToolName): boolean => LOGGING_TOOLS.includes(name);

/** True if callers have a tool for answering requests. */
export const hasAnswerTool = (listed: readonly ToolName[]): boolean => listed.includes("claude_code_check");

/** Returns the tool for opening the gate to `bypassPermissions`, if listed. */
export const findBypassTool = (listed: readonly ToolName[]): ToolName | undefined =>
  listed.find((name) => name === "claude_code_configure");

/** True if the toolset `agent` is listed. MCP prompts name only tools of this toolset. */
export const hasPrompts = (listed: readonly ToolName[]): boolean =>
  TOOLSETS.agent.every((name) => listed.includes(name));

/** Instructions for the client's model: how to combine the listed tools. */

const AGENT = `Runs Claude Code as a background agent that outlives the call.
1. Start a task with claude_code (for a short one, set waitMs to wait for the result).
2. Poll with claude_code_check, passing sessionId and nextCursor: it waits, then returns output, requests in actions[] and the result.
3. Answer each entry of actions[] with claude_code_check, action respond_permission (answer_question for a question); it then waits again.
4. Send the next prompt with claude_code_reply. List or cancel sessions with claude_code_session.
Resources: skill://claude-agents/delegate, claude-code://quickstart, permissions, errors, options.`;

const QUERY = "Run one task to its end with claude_code_query; it returns the messages.";

const CHAT =
  "Open a conversation with claude_session_create, send prompts with claude_chat_query, end it with claude_session_close; claude_direct_query does all three.";

const PARTS: readonly (readonly [tool: ToolName, text: string])[] = [
  ["claude_code", AGENT],
  ["claude_code_query", QUERY],
  ["claude_chat_query", CHAT],
];

export function instructionsFor(listed: readonly ToolName[]): string {
  return PARTS.flatMap(([tool, text]) => (listed.includes(tool) ? [text] : [])).join("\n");
}
