import type { OpenAsk } from "../../domain/permission.ts";
import type { Asked } from "../present/action.ts";
import type { SessionView } from "../session-view.ts";

/** An open request with all that the log has of it. */
export async function readAsked(view: Pick<SessionView, "read">, open: OpenAsk): Promise<Asked | undefined> {
  const [event] = await view.read(open.eventId, 1);
  return event?.type === "permission.asked" || event?.type === "question.asked" ? { open, ask: event.data } : undefined;
}
