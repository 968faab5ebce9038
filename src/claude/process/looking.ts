import type { HookCallback, HookInput, Options } from "@anthropic-ai/claude-agent-sdk";
import { CAN_RUN } from "../../domain/approvals/risk.ts";
import { isClosed, judgeRequest } from "../risk/judge.ts";
import type { Folders } from "../risk/places.ts";
import { judgeShellEdit } from "../risk/shell-edits.ts";

/**
 * What is looked at before each use of a tool, in every mode: in acceptEdits Claude Code would write files that run commands
 * without a word, by some shell commands too. It is asked there; what nobody may allow is denied.
 */

/** Modes in which all runs unasked. */
const UNASKED: ReadonlySet<string | undefined> = new Set(["auto", "bypassPermissions"]);

/** The hooks of a process: the look, and those that its options bring. */
export function hooksOf(look: HookCallback, others: Options["hooks"] = {}): NonNullable<Options["hooks"]> {
  const { PreToolUse: own = [] } = others;
  return { ...others, PreToolUse: [...own, { hooks: [look] }] };
}

export interface Looked {
  readonly folders: Folders;
  /** Whether the session's own rules let every command run. */
  readonly allowsCommands: boolean;
}

export function lookingWith(looked: Looked): HookCallback {
  return async (input) => decide(input, looked).catch(() => said("ask", "Its path cannot be determined."));
}

async function decide(hook: HookInput, looked: Looked): ReturnType<HookCallback> {
  if (hook.hook_event_name !== "PreToolUse") return {};
  const { permission_mode: mode, tool_name: toolName, tool_input: input, tool_use_id: toolUseId } = hook;
  const given = typeof input === "object" && input !== null ? { ...input } : {};
  if (mode === "acceptEdits" && toolName === "Bash") return asEdit(given, looked);
  const ask = { requestId: toolUseId, kind: "permission" as const, toolName, toolUseId, input: given };
  const { refused, risk } = await judgeRequest(ask, looked.folders);
  if (refused !== undefined) return said("deny", refused);
  return risk?.why.includes(CAN_RUN) && !UNASKED.has(mode) ? said("ask", CAN_RUN) : {};
}

async function asEdit({ command }: { command?: unknown }, { allowsCommands, folders }: Looked) {
  const edit = typeof command === "string" ? await judgeShellEdit(command, folders) : undefined;
  if (edit?.closed) return said("deny", isClosed(edit.closed));
  return edit?.canRun === true && !allowsCommands ? said("ask", CAN_RUN) : {};
}

function said(permissionDecision: "ask" | "deny", permissionDecisionReason: string) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse" as const, permissionDecision, permissionDecisionReason } };
}
