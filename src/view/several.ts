import { invalidArgument } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionState } from "../domain/session.ts";
import { assembleCheck, type CheckAnswer, type CheckMaterial } from "./check.ts";
import { jsonBytes } from "./size.ts";

/**
 * Builds an answer with several sessions. The session that woke the call comes first, then sessions with little to show; each
 * has a fair share of the remaining room. A session without room keeps its cursor, for a later answer.
 */

interface Part {
  readonly target: { readonly cursor: number };
  readonly state: SessionState;
  readonly material: CheckMaterial;
}

interface Several {
  readonly answer: JsonObject;
  /** Requests shown, for each session in order. */
  readonly shown: readonly CheckAnswer["shown"][];
}

/** Minimum bytes to render a session. */
const LEAST_BYTES = 2_048;

export function assembleSeveral(parts: readonly Part[], woke: string | undefined, maxBytes: number): Several {
  const waker = parts.find(({ material, state, target }) => {
    // An idle session ends the wait without news.
    return material.head["sessionId"] === woke && state.lastEventId >= target.cursor;
  });
  const head = waker === undefined ? {} : { woke };
  const briefs = parts.map(placeholder);
  const frame = jsonBytes({ ...head, sessions: briefs });
  if (maxBytes < frame + LEAST_BYTES) {
    const least = `must be at least ${String(frame + LEAST_BYTES)} for these ${String(parts.length)} sessions`;
    throw invalidArgument("maxBytes", `${least}, not ${String(maxBytes)}.`);
  }
  const rendered = new Map<Part, CheckAnswer>();
  let left = maxBytes - frame;
  const ranked = parts.toSorted((a, b) => (a === waker ? -1 : b === waker ? 1 : sizeOf(a) - sizeOf(b)));
  for (const [index, part] of ranked.entries()) {
    const own = jsonBytes(placeholder(part));
    const share = Math.max(LEAST_BYTES, own + Math.floor(left / (ranked.length - index)));
    if (share - own > left) continue;
    const answer = assembleCheck(part.material, share);
    left -= jsonBytes(answer.answer) - own;
    rendered.set(part, answer);
  }
  const answers = parts.map((part, index) => rendered.get(part) ?? { answer: briefs[index] ?? {}, shown: [] });
  return {
    answer: { ...head, sessions: answers.map(({ answer }) => answer) },
    shown: answers.map(({ shown }) => shown),
  };
}

function sizeOf({ material: { asked, events, result } }: Part): number {
  return jsonBytes([events, asked.map(({ request }) => request), result ?? null]);
}

/** Placeholder for a session without room. */
function placeholder({ material, target }: Part): JsonObject {
  const { sessionId, status, waiting } = material.head;
  return {
    sessionId,
    status,
    ...(waiting !== undefined && { waiting }),
    truncated: true,
    truncatedFields: ["events", "actions", "result"],
    nextCursor: target.cursor,
  };
}
