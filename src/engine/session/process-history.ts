import type { EventType } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Decision, PermissionUpdate } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { SessionBackend } from "../ports.ts";

/** Reads from the log the history of a process that a former owner has left. */

/** Maximum number of messages of a turn for the reader of an attached process. */
const MAX_SPOKEN = 200;
/** Maximum number of events in one read. */
const PAGE = 200;

type Log = Pick<SessionBackend["log"], "read">;

/** Returns the permission changes that answers made in the last process. Each process begins without such changes. */
export async function readPermissionChanges(log: Log, sessionId: string): Promise<PermissionUpdate[]> {
  const types: EventType[] = ["process.started", "permission.answered", "question.answered"];
  let changes: PermissionUpdate[] = [];
  for (let from = 1; ;) {
    const page = await log.read(sessionId, from, PAGE, types);
    for (const event of page) {
      if (event.type === "process.started") changes = [];
      else if (event.type === "permission.answered" || event.type === "question.answered")
        changes.push(...(event.data.updatedPermissions ?? []));
      else throw new Error(`Event ${String(event.id)} cannot be read: it may have changed what is allowed.`);
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return changes;
    from = last.id + 1;
  }
}

/** Returns an answer in the log, for a process that asks again. A request that ended without an approver's answer is denied. */
export async function readAnswer(log: Log, sessionId: string, eventId: number): Promise<Decision> {
  const event = (await log.read(sessionId, eventId, 1)).at(0);
  if (event?.type !== "permission.answered" && event?.type !== "question.answered")
    return { behavior: "deny", message: `The answer cannot be read (event ${String(eventId)}).` };
  const { behavior, message = "The request was withdrawn.", updatedInput, updatedPermissions } = event.data;
  const changes = { ...(updatedInput && { updatedInput }), ...(updatedPermissions && { updatedPermissions }) };
  return behavior === "allow" ? { behavior, ...changes } : { behavior, message };
}

/** Returns the last messages of the running turn, at most `MAX_SPOKEN`. */
export async function readSpokenMessages(
  log: Log,
  sessionId: string,
  { lastTurnEventId, turn }: Pick<SessionState, "lastTurnEventId" | "turn">,
): Promise<JsonObject[]> {
  if (!turn) return [];
  let spoken: JsonObject[] = [];
  let from = (lastTurnEventId ?? 0) + 1;
  for (;;) {
    const page = await log.read(sessionId, from, MAX_SPOKEN, ["message"]);
    const messages = page.flatMap((event) => (event.type === "message" ? [event.data.message] : []));
    spoken = [...spoken, ...messages].slice(-MAX_SPOKEN);
    const last = page.at(-1);
    if (!last || page.length < MAX_SPOKEN) return spoken;
    from = last.id + 1;
  }
}
