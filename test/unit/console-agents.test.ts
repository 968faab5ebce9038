import { expect, it } from "vitest";
import { Agents } from "../../src/console/agents.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { SessionRecord } from "../../src/engine/ports.ts";

/** Looks up the task of a subagent that has a request, in a growing log. */

const SESSION = { id: "s1", createdAt: 1 } as SessionRecord;
const CALLED = { type: "assistant", message: { content: [{ type: "tool_use", id: "t1", name: "Agent" }] } };
const STARTED = {
  type: "system",
  subtype: "task_started",
  task_id: "a1",
  tool_use_id: "t1",
  description: "Look\nround",
};

function logged() {
  const events: StoredEvent[] = [];
  let reads = 0;
  const agents = new Agents({
    read: async (_, from, limit) => {
      reads += 1;
      return Promise.resolve(events.filter(({ id }) => id >= from && id < from + limit));
    },
  });
  const say = (id: number, message: object) => {
    events.push({ id, type: "message", at: 1, data: { message } } as unknown as StoredEvent);
  };
  return { say, reads: () => reads, of: async (eventId: number) => agents.of(SESSION, "a1", eventId) };
}

it("the task of a subagent is cached once it is found, and looked up again if it was not", async () => {
  const { of, reads, say } = logged();
  expect(await of(4)).toBeUndefined();
  say(4, CALLED);
  say(5, STARTED);
  const found = { description: "Look round", eventId: 4 };
  expect(await of(6)).toEqual(found);
  const before = reads();
  expect(await of(9_000)).toEqual(found);
  expect(reads()).toBe(before);
});

it("the task is found behind other messages, and its words are cut to a line", async () => {
  const { of, say } = logged();
  const call = { ...CALLED, message: { content: ["text", null, { type: "tool_use", id: "t1" }] } };
  say(1, call);
  for (const [at, message] of [null, "text", {}, { content: "text" }, { content: [{ id: "t2" }] }].entries()) {
    say(at + 2, { type: "assistant", message });
  }
  say(7, { ...STARTED, description: "word ".repeat(200) });
  say(8, { type: "assistant" });
  const found = await of(9);
  expect(found).toMatchObject({ eventId: 1 });
  expect(found?.description).toMatch(/^word word .*…$/);
});

it("a subagent that was started without words has none", async () => {
  const { of, say } = logged();
  say(1, CALLED);
  say(2, { ...STARTED, description: 7 });
  expect(await of(3)).toEqual({ description: "", eventId: 1 });
});
