import type { EventType } from "../../domain/event.ts";
import type { SessionState } from "../../domain/session.ts";
import type { SessionLog } from "../ports.ts";

/** Turns that a restored conversation lacks. */
export interface MissingTurns {
  /** Number of the last turn that the conversation has, 0 for none. */
  readonly goesOnFrom: number;
  /** Numbers of later turns in which Claude Code has said anything. */
  readonly missing: readonly number[];
}

/** Maximum number of events in one read. */
const PAGE = 200;
const TYPES: EventType[] = ["message", "turn.ended"];

/** Finds the turns that ended after the event `after`. Turns that never reached Claude Code lack nothing. */
export async function readMissingTurns(
  log: Pick<SessionLog, "read">,
  { sessionId, state: { turn, turnCount = 0 } }: { readonly sessionId: string; readonly state: SessionState },
  after: number,
): Promise<MissingTurns> {
  const spoke: boolean[] = [];
  let speaks = false;
  for (let from = after + 1; ;) {
    const page = await log.read(sessionId, from, PAGE, TYPES);
    for (const { type } of page) {
      if (type === "turn.ended") spoke.push(speaks);
      speaks = type !== "turn.ended";
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) break;
    from = last.id + 1;
  }
  const goesOnFrom = turnCount - (turn ? 1 : 0) - spoke.length;
  return { goesOnFrom, missing: spoke.flatMap((did, at) => (did ? [goesOnFrom + at + 1] : [])) };
}
