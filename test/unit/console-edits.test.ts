import { expect, test } from "vitest";
import { areEdited } from "../../console/src/timeline/fold/edits.ts";
import type { CallItem, Item } from "../../console/src/timeline/fold/item.ts";

/** Whether there is anything to put back: files that were changed behind a prompt. */

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

test("a file that was changed behind an event, by a subagent too, can be put back", () => {
  expect(areEdited([call(3, "Write")], 1)).toBe(true);
  expect(areEdited([call(3, "Write")], 3)).toBe(false);
  expect(areEdited([call(2, "Agent", { children: [call(4, "Edit")] })], 3)).toBe(true);
});

test("what only looked, was denied or failed has changed none", () => {
  const items = [call(3, "Read"), call(4, "Edit", { state: "denied" }), call(5, "Write", { state: "failed" })];
  expect(areEdited(items, 1)).toBe(false);
});
