import type { ToolLimits } from "./arguments/wait-limits.ts";

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

interface Instructions {
  readonly usual: string;
  /** For a client that follows tasks by itself. */
  readonly tasks: string;
  /** For a client whose calls wait by default. */
  readonly waits?: string;
}

const INTRODUCTION = "Runs Claude Code as a background agent that outlives the call.";
const RESOURCES = "Resources: skill://claude-agents/delegate, claude-code://quickstart, permissions, errors, options.";
const ANSWER =
  "with claude_code_check, action respond_permission (answer_question for a question); it then waits again.";
const REPLY = "Send the next prompt with claude_code_reply. List or cancel sessions with claude_code_session.";

const AGENT: Instructions = {
  usual: `${INTRODUCTION}
1. Start a task with claude_code (for a short one, set waitMs to wait for the result).
2. Poll with claude_code_check, passing sessionId and nextCursor: it waits, then returns output, requests in actions[] and the result.
3. Answer each entry of actions[] ${ANSWER}
4. ${REPLY}
${RESOURCES}`,
  tasks: `${INTRODUCTION}
1. Start a task with claude_code. Its result comes by itself, as a notification, and its requests are shown to the user in a form: go on or end your turn, and do not look for them.
2. ${REPLY}
3. Use claude_code_check only for output that the result leaves out, or if you are told to answer a request.
${RESOURCES}`,
  waits: `${INTRODUCTION}
1. Start a task with claude_code: the call waits for the result, or for requests in actions[].
2. Answer each entry of actions[] ${ANSWER}
3. ${REPLY}
4. For several tasks at once, start each with waitMs 0, then wait for all with claude_code_check (sessions).
${RESOURCES}`,
};

const QUERY: Instructions = {
  usual: "Run one task to its end with claude_code_query; it returns the messages.",
  tasks: "Run one task to its end with claude_code_query; its messages come by themselves, as a notification.",
};

const CONVERSATION = "Open a conversation with claude_session_create, send prompts with claude_chat_query";
const CHAT: Instructions = {
  usual: `${CONVERSATION}, end it with claude_session_close; claude_direct_query does all three.`,
  tasks: `${CONVERSATION}, end it with claude_session_close; claude_direct_query does all three. Replies come by themselves, as notifications.`,
};

const PARTS: readonly (readonly [tool: ToolName, text: Instructions])[] = [
  ["claude_code", AGENT],
  ["claude_code_query", QUERY],
  ["claude_chat_query", CHAT],
];

export function instructionsFor(
  listed: readonly ToolName[],
  { followsTasks = false, waitsByDefault = false }: Pick<ToolLimits, "followsTasks" | "waitsByDefault"> = {},
): string {
  const parts = PARTS.flatMap(([tool, text]) => (listed.includes(tool) ? [text] : []));
  return parts
    .map(({ tasks, usual, waits = usual }) => (followsTasks ? tasks : waitsByDefault ? waits : usual))
    .join("\n");
}
