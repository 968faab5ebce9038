import type { SessionEvent } from "../../domain/event.ts";
import type { Identity } from "../../domain/process.ts";
import { initialState, type SessionState } from "../../domain/session.ts";

/** Settles the state of a session that was packed on another machine and goes on here. */

interface NewPlace {
  readonly at: number;
  readonly identity: Identity;
  /** Sentences for the log on where the session has come from. */
  readonly message: string;
}

/** Reason for dropping prompts that waited when the session was packed: the original session has them still. */
const UNPACKED = "unpacked";

/**
 * Returns the state here, and the events that end what was open there. Takes over only facts about the conversation: processes,
 * environments and remembered answers belong to the other machine, and its costs were counted there.
 */
export function settleUnpacked(packed: SessionState, { at, identity, message }: NewPlace) {
  const { background, lastEventId, process, queue, totals } = packed;
  const events: SessionEvent[] = [];
  if (process.phase !== "none")
    events.push({ type: "process.exited", data: { processId: process.id, code: null, signal: null, expected: true } });
  if (background.length > 0) events.push({ type: "background.changed", data: { tasks: [] } });
  for (const { promptId } of queue) events.push({ type: "prompt.dropped", data: { promptId, reason: UNPACKED } });
  events.push({ type: "notice", data: { kind: "owner.changed", message } });
  const { closed, lastOutcome, lastReceiptEventId, lastToolUseId, lastTurnEventId } = packed;
  const { origin, processCount, recentKeys, transcriptId, turnCount, turnsBefore } = packed;
  const state: SessionState = {
    ...initialState(at),
    lastEventId: lastEventId + events.length,
    identity,
    processCount,
    recentKeys,
    lastOutcome,
    lastTurnEventId,
    lastToolUseId,
    totals,
    chargedUsd: totals.costUsd,
    ...(closed && { closed }),
    ...(turnCount !== undefined && { turnCount }),
    ...(lastReceiptEventId !== undefined && { lastReceiptEventId }),
    ...(transcriptId !== undefined && { transcriptId }),
    ...(turnsBefore !== undefined && { turnsBefore }),
    ...(origin && { origin }),
  };
  return { state, events };
}

/** Author of the state of a session whose log is not whole yet. */
const UNPACKING = "unpack";

/** Returns the state of a session while its log is written: closed, so that nothing goes on with half a session. */
export function unpackingState(at: number, lastEventId: number): SessionState {
  const message = "The session was not unpacked as a whole. Unpack its file again.";
  return { ...initialState(at), lastEventId, closed: { reason: "closed", by: UNPACKING, at, message } };
}

/** True for a session of which an unpacking that has died has left a part. */
export function isHalfUnpacked({ closed }: SessionState): boolean {
  return closed?.by === UNPACKING;
}
