import { claudeCode } from "./agent/claude-code.ts";
import { claudeCodeCheck } from "./agent/claude-code-check.ts";
import { claudeCodeReply } from "./agent/claude-code-reply.ts";
import { claudeCodeSession } from "./agent/claude-code-session.ts";
import { claudeChatInterrupt, claudeChatMode, claudeChatModel, claudeSessionClose } from "./chat/controls.ts";
import { claudeChatQuery } from "./chat/claude-chat-query.ts";
import { claudeDirectQuery } from "./chat/claude-direct-query.ts";
import { claudeSessionCreate } from "./chat/claude-session-create.ts";
import { claudeCodeConfigure } from "./claude-code-configure.ts";
import type { Tool } from "./define.ts";
import { listToolNames, type ToolName, type Toolset } from "./tool-names.ts";
import { claudeCodeQuery } from "./query/claude-code-query.ts";
import type { ModeGate, QuerySettings } from "./query/settings.ts";

/** Implementations behind the names. `listed.ts` decides which tools are listed. */

export interface ToolsetSettings {
  readonly query: QuerySettings;
  /** Returns the state of the mode gates for a caller with the operator's maximum approval bound. */
  readonly gate: () => ModeGate;
}

const TOOLS: Readonly<Record<ToolName, Tool | ((settings: ToolsetSettings) => Tool)>> = {
  claude_code: claudeCode,
  claude_code_reply: claudeCodeReply,
  claude_code_check: claudeCodeCheck,
  claude_code_session: claudeCodeSession,
  claude_code_query: ({ gate, query }) => claudeCodeQuery(query, gate),
  claude_session_create: claudeSessionCreate,
  claude_session_close: claudeSessionClose,
  claude_chat_query: claudeChatQuery,
  claude_chat_interrupt: claudeChatInterrupt,
  claude_chat_model: claudeChatModel,
  claude_chat_mode: claudeChatMode,
  claude_direct_query: claudeDirectQuery,
  claude_code_configure: claudeCodeConfigure,
};

export function toolsOf(toolsets: readonly (Toolset | "all")[], settings: ToolsetSettings): readonly Tool[] {
  return listToolNames(toolsets, settings.query).map((name) => {
    const tool = TOOLS[name];
    return typeof tool === "function" ? tool(settings) : tool;
  });
}
