import type { CanUseTool, PermissionResult } from "@anthropic-ai/claude-agent-sdk";
import type { PermissionRequest, Decision } from "../../domain/permission.ts";

/** A request of Claude Code as the engine has it, and the engine's decision as Claude Code takes it. */

export function toPermissionRequest(
  toolName: string,
  input: Record<string, unknown>,
  details: Parameters<CanUseTool>[2],
): PermissionRequest {
  const { agentID, blockedPath, decisionReason, requestId, suggestions, toolUseID } = details;
  return {
    requestId,
    kind: toolName === "AskUserQuestion" ? "question" : "permission",
    toolName,
    input,
    toolUseId: toolUseID,
    ...(agentID !== undefined && { agentId: agentID }),
    ...(suggestions && { suggestions: suggestions.map((suggestion) => ({ ...suggestion })) }),
    ...(decisionReason !== undefined && { decisionReason }),
    ...(blockedPath !== undefined && { blockedPath }),
  };
}

export function toPermissionResult(decision: Decision): PermissionResult {
  if (decision.behavior === "deny") {
    return { behavior: "deny", message: decision.message, ...(decision.interrupt && { interrupt: true }) };
  }
  const { updatedInput, updatedPermissions } = decision;
  return {
    behavior: "allow",
    ...(updatedInput && { updatedInput }),
    ...(updatedPermissions && { updatedPermissions }),
  };
}

/** The same without further folders: those of a session that is fenced in were settled when it began. */
export function withoutFolders(result: PermissionResult): PermissionResult {
  if (result.behavior === "deny" || !result.updatedPermissions) return result;
  const kept = result.updatedPermissions.filter(({ type }) => type !== "addDirectories");
  return { ...result, updatedPermissions: kept };
}
