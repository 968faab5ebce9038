import { expect, test } from "vitest";
import { hasEditsAfter, type CallItem, type Item } from "../../console/src/timeline/reducer/item.ts";

/** A rewind would restore files if `hasEditsAfter` returns true. */

const call = (eventId: number, name: string, over: Partial<CallItem> = {}): Item => ({
  kind: "call",
  key: `call ${String(eventId)}`,
  eventId,
  at: 0,
  cutIn: [],
  id: String(eventId),
  name,
  input: {},
  state: "done",
  children: [],
  ...over,
});

test("`hasEditsAfter` counts a file changed after the event, also by a subagent", () => {
  expect(hasEditsAfter([call(3, "Write")], 1)).toBe(true);
  expect(hasEditsAfter([call(3, "Write")], 3)).toBe(false);
  expect(hasEditsAfter([call(2, "Agent", { children: [call(4, "Edit")] })], 3)).toBe(true);
});

test("`hasEditsAfter` does not count a call that only read, was denied or failed", () => {
  const items = [call(3, "Read"), call(4, "Edit", { state: "denied" }), call(5, "Write", { state: "failed" })];
  expect(hasEditsAfter(items, 1)).toBe(false);
});
