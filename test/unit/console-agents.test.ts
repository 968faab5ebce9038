import { expect, it } from "vitest";
import { SubagentTasks } from "../../src/console/subagent-tasks.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { SessionRecord } from "../../src/engine/ports.ts";

/** Tests how `SubagentTasks` looks up the task of a subagent in a growing log. */

const SESSION = { id: "s1", createdAt: 1 } as SessionRecord;
const CALLED = { type: "assistant", message: { content: [{ type: "tool_use", id: "t1", name: "Agent" }] } };
const STARTED = {
  type: "system",
  subtype: "task_started",
  task_id: "a1",
  tool_use_id: "t1",
  description: "Look\nround",
};

function growingLog() {
  const events: StoredEvent[] = [];
  let reads = 0;
  const agents = new SubagentTasks({
    read: async (_, from, limit) => {
      reads += 1;
      return Promise.resolve(events.filter(({ id }) => id >= from && id < from + limit));
    },
  });
  const log = (id: number, message: object) => {
    events.push({ id, type: "message", at: 1, data: { message } } as unknown as StoredEvent);
  };
  return { log, reads: () => reads, of: async (eventId: number) => agents.findTask(SESSION, "a1", eventId) };
}

it("the task of a subagent is cached once found; a miss is looked up again", async () => {
  const { of, reads, log } = growingLog();
  expect(await of(4)).toBeUndefined();
  log(4, CALLED);
  log(5, STARTED);
  const found = { description: "Look round", eventId: 4 };
  expect(await of(6)).toEqual(found);
  const before = reads();
  expect(await of(9_000)).toEqual(found);
  expect(reads()).toBe(before);
});

it("the task of a subagent is found behind other messages, and its description is cut to one line", async () => {
  const { of, log } = growingLog();
  const call = { ...CALLED, message: { content: ["text", null, { type: "tool_use", id: "t1" }] } };
  log(1, call);
  for (const [at, message] of [null, "text", {}, { content: "text" }, { content: [{ id: "t2" }] }].entries()) {
    log(at + 2, { type: "assistant", message });
  }
  log(7, { ...STARTED, description: "word ".repeat(200) });
  log(8, { type: "assistant" });
  const found = await of(9);
  expect(found).toMatchObject({ eventId: 1 });
  expect(found?.description).toMatch(/^word word .*…$/);
});

it("the task of a subagent started without a description has an empty description", async () => {
  const { of, log } = growingLog();
  log(1, CALLED);
  log(2, { ...STARTED, description: 7 });
  expect(await of(3)).toEqual({ description: "", eventId: 1 });
});
