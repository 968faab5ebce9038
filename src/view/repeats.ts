import type { JsonObject } from "../domain/json.ts";
import type { ShownEvent } from "./event.ts";
import { SEE_RESULT } from "./result.ts";
import { partsOf } from "./telling.ts";

/** What an answer would say twice: in an event, and in its result or its requests. */

/** The requests that the answer lists, and the tool calls they are of. */
export type Listed = ReadonlyMap<string, string>;

/** An event without what the requests of the answer tell; undefined where nothing is left of it. */
export function withoutListed(event: ShownEvent, listed: Listed): ShownEvent | undefined {
  const { data, type } = event;
  if (type === "permission_request") return listed.has(String(data["requestId"])) ? undefined : event;
  if (type !== "output") return event;
  const asked = new Set<unknown>(listed.values());
  const parts = partsOf(data);
  const left = parts.filter(({ toolUseId }) => !asked.has(toolUseId));
  if (left.length === parts.length) return event;
  const { agentId, error, text } = data;
  const [first, ...others] = left;
  const said = { ...(text !== undefined && { text }), ...(error !== undefined && { error }) };
  if (!first && Object.keys(said).length === 0) return undefined;
  const beside = { ...(others.length > 0 && { others }), ...(agentId !== undefined && { agentId }) };
  return { ...event, data: { ...said, ...first, ...beside } };
}

/** The output with which the turn of the result ended, where it says the very same. */
export function lastWordsIn(events: readonly ShownEvent[], result: JsonObject | undefined): ShownEvent | undefined {
  const last = events.findLast(({ type }) => type === "output" || type === "result" || type === "error");
  if (!result || last?.type !== "output" || last.data["text"] !== result["result"]) return undefined;
  return Object.keys(last.data).length === 1 ? last : undefined;
}

/** Whether an output is the very text of the result; a short one is clearer as it stands. */
export function saysAgain({ type, data }: ShownEvent, result: JsonObject | undefined): boolean {
  const { text } = data;
  return (
    type === "output" && typeof text === "string" && text.length > SEE_RESULT.length && text === result?.["result"]
  );
}

export function seeResult(event: ShownEvent): ShownEvent {
  return { ...event, data: { ...event.data, text: SEE_RESULT } };
}
