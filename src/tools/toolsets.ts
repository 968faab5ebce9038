import { claudeCode } from "./agent/claude-code.ts";
import { claudeCodeCheck } from "./agent/claude-code-check.ts";
import { claudeCodeReply } from "./agent/claude-code-reply.ts";
import { claudeCodeSession } from "./agent/claude-code-session.ts";
import { claudeChatInterrupt } from "./chat/claude-chat-interrupt.ts";
import { claudeChatMode } from "./chat/claude-chat-mode.ts";
import { claudeChatModel } from "./chat/claude-chat-model.ts";
import { claudeChatQuery } from "./chat/claude-chat-query.ts";
import { claudeDirectQuery } from "./chat/claude-direct-query.ts";
import { claudeSessionClose } from "./chat/claude-session-close.ts";
import { claudeSessionCreate } from "./chat/claude-session-create.ts";
import { claudeCodeConfigure } from "./configure/claude-code-configure.ts";
import type { Tool } from "./define.ts";
import { claudeCodeQuery } from "./query/claude-code-query.ts";
import type { QuerySettings } from "./query/settings.ts";

/** Which tools a server lists. What a tool does is its own matter; that it is there is decided here. */

export interface ToolsetSettings {
  readonly query: QuerySettings;
}

const TOOLSETS = {
  /** Background sessions: the fewest tools that can do all (seeds 001 and 002). */
  agent: () => [claudeCode, claudeCodeReply, claudeCodeCheck, claudeCodeSession],
  /** One call that blocks and has every message (seed 003). */
  query: ({ query }) => (query.enabled ? [claudeCodeQuery(query)] : []),
  /** A conversation held open, its text streamed (seed 004). */
  chat: () => [
    claudeSessionCreate,
    claudeSessionClose,
    claudeChatQuery,
    claudeChatInterrupt,
    claudeChatModel,
    claudeChatMode,
    claudeDirectQuery,
  ],
  /** The bypass gate at run time (seed 001). */
  configure: () => [claudeCodeConfigure],
} satisfies Record<string, (settings: ToolsetSettings) => readonly Tool[]>;

export type Toolset = keyof typeof TOOLSETS;

const ALL: readonly Toolset[] = ["agent", "query", "chat", "configure"];

/** In the order of the table, whatever the order of the names. */
export function toolsOf(toolsets: readonly (Toolset | "all")[], settings: ToolsetSettings): readonly Tool[] {
  const listed = ALL.filter((toolset) => toolsets.includes(toolset) || toolsets.includes("all"));
  return listed.flatMap((toolset) => TOOLSETS[toolset](settings));
}
