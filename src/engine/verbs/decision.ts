import { parseRule } from "../../domain/approvals/rule.ts";
import { REMEMBERED_LONGEST, type Remember } from "../../domain/approvals/remembered.ts";
import { keptToSession, PermissionUpdate, type Decision } from "../../domain/permission.ts";
import type { AnswerRequest } from "../api.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";

/** What a caller's answer means to Claude Code. */
export function decisionOf(request: AnswerRequest): Decision {
  if (request.decision === "deny") {
    const message = request.denyMessage ?? "The request was denied.";
    return { behavior: "deny", message, ...(request.interrupt && { interrupt: true }) };
  }
  const updates = keptToSession(request.updatedPermissions ?? []);
  return {
    behavior: "allow",
    ...(request.updatedInput && { updatedInput: request.updatedInput }),
    ...(updates.length > 0 && { updatedPermissions: updates }),
  };
}

/** Folders that it would open to Claude Code are checked like those of the start, and opened as they really are. */
export async function withinPlaces(
  runtime: Pick<AgentRuntime, "check">,
  { principal, spec }: SessionRecord,
  decision: Decision,
): Promise<Decision> {
  if (decision.behavior === "deny" || !decision.updatedPermissions) return decision;
  const updatedPermissions: PermissionUpdate[] = [];
  for (const update of decision.updatedPermissions) {
    updatedPermissions.push(update.type === "addDirectories" ? await checked(update) : update);
  }
  return { ...decision, updatedPermissions };

  async function checked(update: Extract<PermissionUpdate, { type: "addDirectories" }>): Promise<PermissionUpdate> {
    const { additionalDirectories: directories = [] } = await runtime.check(principal, {
      ...spec,
      additionalDirectories: update.directories,
    });
    return { ...update, directories };
  }
}

/**
 * What Claude Code suggests to allow from now on, or else the tool, or of a command just this one. Rules only: it also
 * suggests further folders, and a mode in which edits and deletions run unasked, which is more than anybody means who
 * allows one tool.
 */
export async function rememberable(
  backend: SessionBackend,
  record: SessionRecord,
  requestId: string,
): Promise<Remember | undefined> {
  const open = record.state.asks.find((each) => each.requestId === requestId);
  const [event] = open ? await backend.read(record.id, open.eventId, 1) : [];
  if (event?.type !== "permission.asked") return undefined;
  const { data: ask } = event;
  const suggested = (ask.suggestions ?? []).flatMap((suggestion) => {
    const parsed = PermissionUpdate.safeParse(suggestion);
    if (!parsed.success || parsed.data.type !== "addRules" || parsed.data.behavior !== "allow") return [];
    return parsed.data.rules.map(({ ruleContent, toolName }) => textOf(toolName, ruleContent));
  });
  const { command } = ask.input;
  // In a rule a star is any text, which nobody has seen.
  const isPattern = typeof command === "string" && command.includes("*");
  const rules =
    suggested.length > 0 || isPattern
      ? suggested
      : [textOf(ask.toolName, typeof command === "string" ? command : undefined)];
  const kept = rules.filter((text) => text.length <= REMEMBERED_LONGEST && parseRule(text, "allow").ok);
  return { rules: [...new Set(kept)], level: ask.risk?.level ?? "all", eventId: event.id };
}

function textOf(toolName: string, content: string | undefined): string {
  return content === undefined ? toolName : `${toolName}(${content})`;
}
