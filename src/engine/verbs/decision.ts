import { keptToSession, PermissionUpdate, type Decision } from "../../domain/permission.ts";
import type { AnswerRequest } from "../api.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";

/** What a caller's answer means to Claude Code. */
export async function decisionOf(
  backend: SessionBackend,
  record: SessionRecord,
  request: AnswerRequest,
): Promise<Decision> {
  if (request.decision === "deny") {
    const message = request.denyMessage ?? "The request was denied.";
    return { behavior: "deny", message, ...(request.interrupt && { interrupt: true }) };
  }
  const remembered =
    request.decision === "allow_for_session" ? await rememberable(backend, record, request.requestId) : [];
  const updates = keptToSession([...(request.updatedPermissions ?? []), ...remembered]);
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
 * What Claude Code suggests to allow from now on, or else the tool. Rules only: it also suggests further folders, and a
 * mode in which edits and deletions run unasked, which is more than anybody means who allows one tool.
 */
async function rememberable(
  backend: SessionBackend,
  record: SessionRecord,
  requestId: string,
): Promise<PermissionUpdate[]> {
  const ask = record.state.asks.find((open) => open.requestId === requestId);
  if (!ask) return [];
  const [event] = await backend.read(record.id, ask.eventId, 1);
  const suggestions = event?.type === "permission.asked" ? (event.data.suggestions ?? []) : [];
  const known = suggestions.flatMap((suggestion) => {
    const parsed = PermissionUpdate.safeParse(suggestion);
    return parsed.success && parsed.data.type === "addRules" ? [parsed.data] : [];
  });
  if (known.length > 0) return known;
  const rules = [{ toolName: ask.toolName }];
  return [{ type: "addRules", rules, behavior: "allow", destination: "session" }];
}
