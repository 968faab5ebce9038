import { keptToSession, type Decision, type PermissionUpdate } from "../../domain/permission.ts";
import type { AnswerRequest } from "../api.ts";
import type { AgentRuntime, SessionRecord } from "../ports.ts";

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
  runtime: Pick<AgentRuntime, "checkFolders">,
  { policy, principal, spec: options }: SessionRecord,
  decision: Decision,
): Promise<Decision> {
  if (decision.behavior === "deny" || !decision.updatedPermissions) return decision;
  const updatedPermissions: PermissionUpdate[] = [];
  for (const update of decision.updatedPermissions) {
    updatedPermissions.push(update.type === "addDirectories" ? await checked(update) : update);
  }
  return { ...decision, updatedPermissions };

  async function checked(update: Extract<PermissionUpdate, { type: "addDirectories" }>): Promise<PermissionUpdate> {
    return { ...update, directories: await runtime.checkFolders({ options, policy, principal }, update.directories) };
  }
}
