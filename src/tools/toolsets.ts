import { claudeCode } from "./agent/claude-code.ts";
import { claudeCodeCheck } from "./agent/claude-code-check.ts";
import { claudeCodeReply } from "./agent/claude-code-reply.ts";
import { claudeCodeSession } from "./agent/claude-code-session.ts";
import type { Tool } from "./define.ts";

/** Which tools a server lists. What a tool does is its own matter; that it is there is decided here. */

const TOOLSETS = {
  /** Background sessions: the fewest tools that can do all (seeds 001 and 002). */
  agent: [claudeCode, claudeCodeReply, claudeCodeCheck, claudeCodeSession],
} satisfies Record<string, readonly Tool[]>;

export type Toolset = keyof typeof TOOLSETS;

export function toolsOf(toolsets: readonly Toolset[]): readonly Tool[] {
  return [...new Set(toolsets.flatMap((toolset) => TOOLSETS[toolset]))];
}
