import type { EventType } from "../../domain/event.ts";
import type { SessionState } from "../../domain/session.ts";
import type { SessionLog } from "../ports.ts";

/** Turns that a restored conversation lacks. */
export interface MissingTurns {
  /** Number of the last turn that the conversation has, 0 for none. */
  readonly goesOnFrom: number;
  /** Numbers of later turns, those that never reached Claude Code excluded. */
  readonly missing: readonly number[];
}

/** Maximum number of events in one read. */
const PAGE = 200;
const TYPES: EventType[] = ["message", "turn.ended"];

/** Finds the turns that ended after the event `after`. */
export async function readMissingTurns(
  log: Pick<SessionLog, "read">,
  { sessionId, state: { turn, turnCount = 0 } }: { readonly sessionId: string; readonly state: SessionState },
  after: number,
): Promise<MissingTurns> {
  const wasGiven: boolean[] = [];
  let speaks = false;
  for (let from = after + 1; ;) {
    const page = await log.read(sessionId, from, PAGE, TYPES);
    for (const event of page) {
      const isEnd = event.type === "turn.ended";
      // A prompt that was lost is missing too, even if Claude Code had said nothing yet.
      if (isEnd) wasGiven.push(speaks || event.data.outcome !== "failed");
      speaks = !isEnd;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) break;
    from = last.id + 1;
  }
  const goesOnFrom = turnCount - (turn ? 1 : 0) - wasGiven.length;
  return { goesOnFrom, missing: wasGiven.flatMap((given, at) => (given ? [goesOnFrom + at + 1] : [])) };
}
