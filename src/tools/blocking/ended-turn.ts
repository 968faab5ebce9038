import { AppError } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { EndedTask } from "../define.ts";
import type { EndOfTurn, ReadableSession } from "../readable-session.ts";

const PAGE = 256;

/** Reads a turn from its prompt to its end, calls `onEvent` for each event in order, and returns the end. */
export async function readTurn(
  view: ReadableSession,
  { cursor, endEventId }: Pick<EndedTask, "cursor" | "endEventId">,
  onEvent: (event: StoredEvent) => unknown,
): Promise<EndOfTurn> {
  for (let next = cursor; next <= endEventId;) {
    const page = await view.read(next, Math.min(PAGE, endEventId - next + 1));
    for (const event of page) onEvent(event);
    const last = page.at(-1);
    if (last?.id === endEventId && last.type === "turn.ended") return last;
    if (!last) break;
    next = last.id + 1;
  }
  throw new AppError("SESSION_NOT_FOUND", "The end of the turn cannot be read.", { sessionId: view.id });
}
