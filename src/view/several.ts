import { invalidArgument } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionState } from "../domain/session.ts";
import { assembleCheck, type CheckAnswer, type CheckMaterial } from "./check.ts";
import { jsonBytes } from "./size.ts";

/**
 * Several sessions in one answer. The one that woke the call is rendered first, then those with little to tell; each has a
 * fair part of the room that is left. One for which there is no room keeps its cursor and is rendered by a later answer.
 */

interface Part {
  readonly target: { readonly cursor: number };
  readonly state: SessionState;
  readonly material: CheckMaterial;
}

interface Several {
  readonly answer: JsonObject;
  /** What each of the sessions shows, in their order. */
  readonly shown: readonly CheckAnswer["shown"][];
}

/** What one session needs to be rendered of at all. */
const LEAST_BYTES = 2_048;

export function assembleSeveral(parts: readonly Part[], woke: string | undefined, maxBytes: number): Several {
  const waker = parts.find(({ material, state, target }) => {
    // An idle session ends the wait, which is no news.
    return material.head["sessionId"] === woke && state.lastEventId >= target.cursor;
  });
  const head = waker === undefined ? {} : { woke };
  const briefs = parts.map(brief);
  const frame = jsonBytes({ ...head, sessions: briefs });
  if (maxBytes < frame + LEAST_BYTES) {
    const least = `must be at least ${String(frame + LEAST_BYTES)} for these ${String(parts.length)} sessions`;
    throw invalidArgument("maxBytes", `${least}, not ${String(maxBytes)}.`);
  }
  const rendered = new Map<Part, CheckAnswer>();
  let left = maxBytes - frame;
  const ranked = parts.toSorted((a, b) => (a === waker ? -1 : b === waker ? 1 : wanted(a) - wanted(b)));
  for (const [index, part] of ranked.entries()) {
    const own = jsonBytes(brief(part));
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

function wanted({ material: { asked, events, result } }: Part): number {
  return jsonBytes([events, asked.map(({ request }) => request), result ?? null]);
}

/** Nothing of it is rendered yet. */
function brief({ material, target }: Part): JsonObject {
  const { sessionId, status } = material.head;
  return {
    sessionId,
    status,
    truncated: true,
    truncatedFields: ["events", "actions", "result"],
    nextCursor: target.cursor,
  };
}
