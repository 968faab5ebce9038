import { expect, test } from "vitest";
import { areEdited, type CallItem, type Item } from "../../console/src/timeline/reducer/item.ts";

/** Whether a rewind would restore files that were changed after a prompt. */

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

test("a file that was changed after an event, even by a subagent, can be restored", () => {
  expect(areEdited([call(3, "Write")], 1)).toBe(true);
  expect(areEdited([call(3, "Write")], 3)).toBe(false);
  expect(areEdited([call(2, "Agent", { children: [call(4, "Edit")] })], 3)).toBe(true);
});

test("a call that only read, was denied or failed has changed no file", () => {
  const items = [call(3, "Read"), call(4, "Edit", { state: "denied" }), call(5, "Write", { state: "failed" })];
  expect(areEdited(items, 1)).toBe(false);
});
