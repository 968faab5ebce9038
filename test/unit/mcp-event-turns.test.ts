import { expect, it } from "vitest";
import type { FeedItem, SessionBackend } from "../../src/engine/ports.ts";
import { createEventParts } from "../../src/mcp/events/present.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { ManualClock } from "../kit/step/clock.ts";

it("long backlogs of many streams leave the event loop to others between any two events", async () => {
  const store = memoryStore(new ManualClock()).connect("node");
  let reads = 0;
  const rows: SessionBackend["rows"] = {
    ...store.rows,
    get: async () => {
      reads += 1;
      return Promise.resolve(undefined);
    },
  };
  const { present } = createEventParts({
    store: { ...store, rows },
    maskOf: () => (fields) => fields,
    folderOf: async (_, cwd) => Promise.resolve(cwd),
  });
  const item: FeedItem = { name: "turn.ended", sessionId: "s", eventId: 1, at: 0, cursor: "" };
  const backlog = async () => {
    for (let n = 0; n < 10; n += 1) await present(item);
  };
  let most = 0;
  let before = 0;
  const watch = (): void => {
    most = Math.max(most, reads - before);
    before = reads;
    if (reads < 100) setImmediate(watch);
  };
  watch();
  await Promise.all(Array.from({ length: 10 }, backlog));
  expect([reads, most]).toEqual([100, 1]);
  await store.close();
});
