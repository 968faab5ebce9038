import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { reply, SharedFolder, textsAt } from "../kit/step/shared-folder.ts";
import type { TestNode } from "../kit/step/two-nodes.ts";

/** Sessions in a shared folder that go on at another node, with the conversation that is stored. */

let shared: SharedFolder;
let [a, b] = [] as unknown as [TestNode, TestNode];
beforeEach(() => {
  shared = new SharedFolder();
  ({ a, b } = shared.world);
});
afterEach(() => shared.world.close());

const warningsOf = async (node: TestNode, id: string, nth: number) =>
  (await node.waitForEvent(id, "turn.ended", nth)).data.warnings;

describe("a session that goes on at another node", () => {
  it("the next node has the conversation before its process starts, and adds to it", async () => {
    const id = await shared.open(a);
    await a.engine.drain();
    await reply(b, id, "two");
    expect(textsAt(b, id)).toEqual(["one"]);
    shared.answer(b, id, "two");
    await shared.sealed(b, id, 2);
    expect(await warningsOf(b, id, 2)).toBeUndefined();
    expect(await b.story(id)).toContain("process.exited prompt.queued turn.started notice process.started");
    expect(shared.transcripts.writes).toHaveLength(2);
    expect((await b.backend.rows.get(id))!.state.identity).toMatchObject({
      node: "two",
      configFolder: "/config-of-two",
    });
  });

  it("a node with files of its own has them replaced, and the first node goes on from the second's", async () => {
    const id = await shared.open(a);
    await a.engine.drain();
    await shared.turn(b, id, "two", 2);
    await b.engine.drain();
    const c = shared.connect("c", "one");
    for (const [name, content] of a.runtime.conversations.files) c.runtime.conversations.files.set(name, content);
    c.runtime.conversations.append(`${id}.jsonl`, '{"text":"branch"}');
    await shared.turn(c, id, "three", 3);
    expect(textsAt(c, id)).toEqual(["one", "two", "three"]);
  });

  it("a turn that was not stored is missing, and the next result names it", async () => {
    const id = await shared.open(a);
    await reply(a, id, "two");
    const mend = shared.break("seal");
    shared.answer(a, id, "two");
    await a.waitForEvent(id, "turn.ended", 2);
    await reply(a, id, "three");
    a.runtime.lastProcess(id).say({ type: "message", message: { type: "assistant" } });
    await a.waitForEvent(id, "message", 5);
    mend();
    shared.lose(a);
    await reply(b, id, "four");
    expect(textsAt(b, id)).toEqual(["one"]);
    shared.answer(b, id, "four");
    const [warning] = (await warningsOf(b, id, 4)) ?? [];
    expect(warning).toMatch(/goes on from the end of turn 1: turns 2, 3 are missing from Claude Code's memory/);
    expect(await b.waitForEvent(id, "notice")).toMatchObject({
      data: { kind: "data_loss", message: warning, details: { goesOnFrom: 1, missing: 2 } },
    });
  });

  it("a conversation that is not stored as its manifest says is not resumed", async () => {
    const id = await shared.open(a);
    await a.engine.drain();
    const key = `${id}/${id}.jsonl`;
    shared.transcripts.files.set(key, Buffer.from(shared.transcripts.files.get(key)!.toString().replace("one", "ONE")));
    await b.engine.prompt("local", id, { text: "two" });
    const { data } = await b.waitForEvent(id, "turn.ended", 2);
    expect(data).toMatchObject({ outcome: "failed", message: expect.stringContaining("damaged") });
    expect(textsAt(b, id)).toEqual([]);
  });

  it("a conversation of which nothing was stored is not resumed at another node", async () => {
    shared.break();
    const id = await shared.begin(a);
    shared.answer(a, id, "one");
    await a.waitForEvent(id, "turn.ended");
    shared.lose(a);
    await b.engine.prompt("local", id, { text: "two" });
    const { data } = await b.waitForEvent(id, "turn.ended", 2);
    expect(data).toMatchObject({ outcome: "failed", message: expect.stringMatching(/at node one, and no copy/) });
  });
});

describe("a session that goes on at its node", () => {
  it("the node that ran it last uses its own files, which are ahead of the store", async () => {
    const id = await shared.open(a);
    const { conversations } = a.runtime;
    const mend = shared.break();
    await reply(a, id, "two");
    shared.answer(a, id, "two");
    await a.waitForEvent(id, "turn.ended", 2);
    a.runtime.lastProcess(id).kill();
    await a.waitForEvent(id, "process.exited");
    mend();
    await shared.turn(a, id, "three", 3);
    expect(textsAt(a, id)).toEqual(["one", "two", "three"]);
    expect(await warningsOf(a, id, 3)).toBeUndefined();
    expect(conversations).toBe(a.runtime.conversations);
  });

  it("a node whose files are gone takes them from the store", async () => {
    const id = await shared.open(a);
    a.runtime.lastProcess(id).stop();
    await a.waitForEvent(id, "process.exited");
    await shared.world.clock.pass(100);
    a.runtime.conversations.files.clear();
    await shared.turn(a, id, "two", 2);
    expect(textsAt(a, id)).toEqual(["one", "two"]);
  });
});

it("a fork at another node begins with the stored conversation", async () => {
  const id = await shared.open(a);
  const fork = await b.engine.fork(LOCAL_CALLER, id, { text: "branch off" });
  await b.runtime.lastProcess(fork.sessionId).begun;
  expect(textsAt(b, id)).toEqual(["one"]);
});

it("a warning names ten missing turns, however many there are", async () => {
  const id = await shared.begin(a);
  const missing = Array.from({ length: 200 }, (_, at) => at + 1);
  a.runtime.lastProcess(id).say({ type: "restored", goesOnFrom: 0, missing });
  shared.answer(a, id, "one");
  const [warning = ""] = (await warningsOf(a, id, 1)) ?? [];
  expect(warning).toContain("begins anew: turns 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 190 more are missing");
  expect(warning.length).toBeLessThan(300);
});
