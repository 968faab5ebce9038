import type { ShownEvent } from "../../../../src/console/wire.ts";

/** What every item takes from the event it begins with. */
/** `suffix` tells it from others of the same event. */
export function baseOf(event: ShownEvent, suffix = "") {
  return { key: `event ${String(event.id)}${suffix}`, eventId: event.id, at: event.at, cutIn: withCut([], event) };
}

export function withCut(cutIn: readonly number[], { cut, id }: ShownEvent): readonly number[] {
  return cut === true ? [...cutIn, id] : cutIn;
}
