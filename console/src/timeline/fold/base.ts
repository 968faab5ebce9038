import type { ShownEvent } from "../../../../src/console/wire.ts";

/** What every item takes from the event it begins with. */
export function baseOf(event: ShownEvent) {
  return { key: `event ${String(event.id)}`, eventId: event.id, at: event.at, cutIn: withCut([], event) };
}

export function withCut(cutIn: readonly number[], { cut, id }: ShownEvent): readonly number[] {
  return cut === true ? [...cutIn, id] : cutIn;
}
