/** Expected events for a client that follows a log, derived from the log itself. */
import { createHash } from "node:crypto";

/**
 * Returns the digest of an event as reported to a caller. The end of a turn is reported with later details, so its digest has
 * only the id and the type.
 */
export function digestOf({ data, id, type }) {
  const text = type === "output" || type === "progress" ? JSON.stringify(data) : "";
  return `${String(id)} ${type} ${createHash("sha256").update(text).digest("base64url").slice(0, 12)}`;
}

/** Returns the digests of `events` as mode `full` reports them, in order. */
export function toldOf(events) {
  return events.flatMap((event) => {
    const told = TOLD[event.type]?.(event.data);
    return told ? [digestOf({ id: event.id, ...told })] : [];
  });
}

const asked = () => ({ type: "permission_request" });
const answered = () => ({ type: "permission_result" });
const progress = (data) => ({ type: "progress", data });
const TOLD = {
  message: ({ message }) => ({ type: message.type === "assistant" ? "output" : "progress", data: message }),
  "permission.asked": asked,
  "question.asked": asked,
  "permission.answered": answered,
  "question.answered": answered,
  "turn.ended": ({ outcome }) => ({ type: outcome === "failed" || outcome === "lost" ? "error" : "result" }),
  "background.changed": ({ tasks }) => progress({ background: tasks }),
  "prompt.dropped": ({ reason }) => progress({ promptDropped: reason }),
  notice: ({ details, kind, message }) => progress({ notice: kind, message, ...(details && { details }) }),
};

/** Compares the events that a watcher received with the expected events, and looks for gaps in the log. */
export function compare(events, watchers) {
  const sound = {
    holes: events.filter(({ id }, index) => id !== index + 1).length,
    missed: 0,
    changed: 0,
    invented: 0,
  };
  const told = new Map(toldOf(events).map((digest) => [Number(digest.split(" ")[0]), digest]));
  for (const seen of watchers) {
    for (const [id, digest] of told) {
      if (!seen.has(id)) sound.missed += 1;
      else if (seen.get(id) !== digest) sound.changed += 1;
    }
    sound.invented += [...seen.keys()].filter((id) => !told.has(id)).length;
  }
  return sound;
}
