import { requestOf } from "../../domain/event.ts";
import type { OpenRequest } from "../../domain/permission.ts";
import type { Asked } from "../../view/action.ts";
import type { SessionView } from "../session-view.ts";

/** An open request with all that the log has of it. */
export async function readAsked(view: Pick<SessionView, "read">, open: OpenRequest): Promise<Asked | undefined> {
  const request = requestOf((await view.read(open.eventId, 1)).at(0));
  return request && { open, request };
}
