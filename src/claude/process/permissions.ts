import type { CanUseTool, PermissionResult, Query } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { PermissionRequest, PermissionUpdate, Decision } from "../../domain/permission.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { AgentSignal, Judgement } from "../../engine/ports.ts";
import { isFileTool, namedPaths } from "../../security/file-tools.ts";
import { judgeRequest } from "../risk/judge.ts";
import { findShownPaths } from "../risk/mentioned-paths.ts";
import type { Folders } from "../risk/named-paths.ts";
import { runsCommand } from "../risk/risk.ts";
import { unreadFiles } from "../unread-settings.ts";

/** Converts Claude Code's requests for the engine, and the engine's decisions for Claude Code. */

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

/** Removes added folders from `result`, because a sandboxed session has fixed folders. */
export function withoutFolders(result: PermissionResult): PermissionResult {
  if (result.behavior === "deny" || !result.updatedPermissions) return result;
  const kept = result.updatedPermissions.filter(({ type }) => type !== "addDirectories");
  return { ...result, updatedPermissions: kept };
}

/**
 * Judges a request with changed input. Claude Code checks nothing again after approval, so every earlier check has to be
 * repeated here, also Claude Code's own rules.
 */

interface Changed {
  readonly request: PermissionRequest;
  readonly input: JsonObject;
}

/** `denying`: deny rules of the session, in Claude Code's syntax. */
export async function judgeChanged(
  { request, input }: Changed,
  folders: Folders,
  denying: readonly string[],
): Promise<Judgement> {
  const { toolName } = request;
  const judged = await judgeRequest({ ...request, input }, folders);
  const { command } = input;
  const mentions =
    runsCommand(toolName) && typeof command === "string" ? await findShownPaths(command, folders) : undefined;
  const refused = judged.refused ?? (isMoved({ request, input }) ? RELATIVE : undefined);
  return {
    ...judged,
    denying,
    ...(mentions && { mentions }),
    ...(refused !== undefined && { refused }),
  };
}

const RELATIVE = "It names a relative path, and Claude Code may have left the session's folder. Use an absolute path.";

/** True if a relative path has changed: Claude Code resolves relative paths in its current folder, unknown to the server. */
function isMoved({ request, input }: Changed): boolean {
  const { toolName } = request;
  if (!isFileTool(toolName)) return false;
  const before = namedPaths(toolName, request.input) ?? [];
  const isWhole = (path: string) => /^(?:[/~\\]|[A-Za-z]:)/.test(path.trim());
  return (namedPaths(toolName, input) ?? []).some((path) => !isWhole(path) && !before.includes(path));
}

const Settings = z.object({
  effective: z.object({ permissions: z.object({ deny: z.array(z.string()).optional() }).optional() }),
});

/** Missing in the types of the SDK. */
interface Untyped {
  getSettings?: () => Promise<unknown>;
}

/** Returns the deny rules from settings of user, project and machine, as loaded by the running Claude Code. */
export async function deniedBySettings(query: Query & Untyped): Promise<string[]> {
  // Throws if `getSettings` is missing, because `undefined` does not parse.
  const { effective } = Settings.parse(await query.getSettings?.());
  return effective.permissions?.deny ?? [];
}

/** Reports settings files that Claude Code ignored as a whole, with their rules and hooks. Never rejects. */
export async function unreadSettings(query: Query & Untyped): Promise<Extract<AgentSignal, { type: "notice" }>[]> {
  const answer = await query.getSettings?.().catch(() => undefined);
  return unreadFiles(answer).map((problem) => ({ type: "notice", kind: "warning", message: `${problem} ${ADVICE}` }));
}

const ADVICE = "Fix the file, then start a new session.";

/** Returns deny rules added by answers, in force for the lifetime of the process. */
export function deniedBy(changes: readonly PermissionUpdate[]): string[] {
  return changes.flatMap((update) => {
    if (update.type !== "addRules" && update.type !== "replaceRules") return [];
    if (update.behavior !== "deny") return [];
    return update.rules.map(({ ruleContent, toolName }) =>
      ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`,
    );
  });
}
