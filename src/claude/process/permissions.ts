import type { CanUseTool, PermissionResult, Query } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { PermissionRequest, PermissionUpdate, Decision } from "../../domain/permission.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { AgentSignal, Judgement } from "../../engine/ports.ts";
import { judgeRequest } from "../risk/judge.ts";
import { pathsIn } from "../risk/mentioned.ts";
import { namedPaths, type Folders } from "../risk/places.ts";
import { isFileTool, runsCommand } from "../risk/risk.ts";
import { unreadFiles } from "../unread-settings.ts";

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

/** The same without further folders: those of a session in a sandbox were settled when it began. */
export function withoutFolders(result: PermissionResult): PermissionResult {
  if (result.behavior === "deny" || !result.updatedPermissions) return result;
  const kept = result.updatedPermissions.filter(({ type }) => type !== "addDirectories");
  return { ...result, updatedPermissions: kept };
}

/**
 * What a request would be with another input. Claude Code checks nothing again once it is allowed, so all that has judged the
 * request before has to judge this: its own rules too.
 */

interface Changed {
  readonly request: PermissionRequest;
  readonly input: JsonObject;
}

/** `denying` are the rules of the session that deny, in Claude Code's words. */
export async function judgeChanged(
  { request, input }: Changed,
  folders: Folders,
  denying: readonly string[],
): Promise<Judgement> {
  const { toolName } = request;
  const judged = await judgeRequest({ ...request, input }, folders);
  const { command } = input;
  const mentions = runsCommand(toolName) && typeof command === "string" ? await pathsIn(command, folders) : undefined;
  const refused = judged.refused ?? (isMoved({ request, input }) ? RELATIVE : undefined);
  return {
    ...judged,
    denying,
    ...(mentions && { mentions }),
    ...(refused !== undefined && { refused }),
  };
}

const RELATIVE = "It names a relative path, and Claude Code may have left the session's folder. Use an absolute path.";

/** Whether a relative path has changed: it is resolved in the current folder of Claude Code, which the server does not know. */
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

/** In no type of the SDK yet. */
interface Untyped {
  getSettings?: () => Promise<unknown>;
}

/** The rules that deny in the settings of the user, the project and the machine, as the running Claude Code has them. */
export async function deniedBySettings(query: Query & Untyped): Promise<string[]> {
  // Where it cannot be asked the answer is none that parses.
  const { effective } = Settings.parse(await query.getSettings?.());
  return effective.permissions?.deny ?? [];
}

/** The settings files that Claude Code has left out whole, with their rules and hooks. Never rejects. */
export async function unreadSettings(query: Query & Untyped): Promise<Extract<AgentSignal, { type: "notice" }>[]> {
  const answer = await query.getSettings?.().catch(() => undefined);
  return unreadFiles(answer).map((problem) => ({ type: "notice", kind: "warning", message: `${problem} ${ADVICE}` }));
}

const ADVICE = "Fix the file, then start a new session.";

/** The rules to deny that answers have added for as long as the process lives. */
export function deniedBy(changes: readonly PermissionUpdate[]): string[] {
  return changes.flatMap((update) => {
    if (update.type !== "addRules" && update.type !== "replaceRules") return [];
    if (update.behavior !== "deny") return [];
    return update.rules.map(({ ruleContent, toolName }) =>
      ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`,
    );
  });
}
