import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { reply, SharedFolder, VOLUME } from "../kit/step/shared-folder.ts";
import { Gate, type TestNode } from "../kit/step/two-nodes.ts";
import { resultSignal } from "../kit/step/walk.ts";

/** Conversations of sessions in a shared folder: stored at the end of each turn, and before the session is given up. */

let shared: SharedFolder;
let [a, b] = [] as unknown as [TestNode, TestNode];
beforeEach(() => start());
afterEach(() => shared.world.close());

function start(place = VOLUME): void {
  shared = new SharedFolder(place);
  ({ a, b } = shared.world);
}

describe("the end of a turn", () => {
  it("a turn adds what is new of each file, and seals it with the event of its end", async () => {
    const id = await shared.open(a);
    const { size } = shared.transcripts.manifests.get(id)!.files[0]!;
    a.runtime.conversations.append(`${id}/subagents/agent-1.jsonl`, "said");
    await shared.turn(a, id, "two", 2);
    const all = Buffer.byteLength(a.runtime.conversations.files.get(`${id}.jsonl`)!);
    expect(shared.transcripts.writes).toEqual([
      `${id}.jsonl 0+${String(size)}`,
      `${id}.jsonl ${String(size)}+${String(all - size)}`,
      `${id}/subagents/agent-1.jsonl 0+5`,
    ]);
    expect(shared.transcripts.manifests.get(id)).toMatchObject({
      transcriptId: id,
      files: [{ size: all }, { size: 5 }],
    });
  });

  it("a file that no longer begins as stored is stored again, and the former bytes stay until the seal", async () => {
    const id = await shared.open(a);
    const before = shared.transcripts.files.get(`${id}/${id}.jsonl`);
    a.runtime.conversations.files.set(`${id}.jsonl`, '{"text":"rewritten and longer than it has been before"}\n');
    let kept: Buffer | undefined;
    shared.transcripts.before = (what) =>
      void (what === "seal" && (kept = shared.transcripts.files.get(`${id}/${id}.jsonl`)));
    await shared.turn(a, id, "two", 2);
    expect(kept).toEqual(before);
    expect([...shared.transcripts.files.keys()]).toEqual([`${id}/${id}.jsonl:2`]);
    await shared.turn(a, id, "three", 3);
    expect(shared.transcripts.writes.at(-1)).toMatch(/\.jsonl:2 [1-9]/);
  });

  it("a caller has the end of the turn before anything is stored", async () => {
    const gate = new Gate();
    gate.closed = true;
    shared.transcripts.before = async () => gate.pass();
    const id = await shared.begin(a);
    shared.answer(a, id, "one");
    await a.waitForEvent(id, "turn.ended");
    await gate.arrived;
    await reply(a, id, "two");
    expect(shared.transcripts.manifests.size).toBe(0);
    gate.open();
    shared.answer(a, id, "two");
    await shared.sealed(a, id, 2);
  });

  it("a turn whose end is not in the transcript within 2 s leaves the manifest before, until its process has ended", async () => {
    const id = await shared.open(a);
    const before = shared.transcripts.manifests.get(id);
    await reply(a, id, "two");
    const write = shared.answer(a, id, "two", { isLate: true });
    await a.waitForEvent(id, "turn.ended", 2);
    await shared.world.clock.pass(2_500);
    expect(shared.transcripts.manifests.get(id)).toEqual(before);
    expect(a.complaints).toEqual(["a conversation was not stored for other nodes"]);
    write();
    a.runtime.lastProcess(id).stop();
    await shared.sealed(a, id, 2);
  });

  it("a line that is being written is not stored", async () => {
    const id = await shared.begin(a);
    shared.answer(a, id, "one");
    a.runtime.conversations.files.set(`${id}.jsonl`, `${a.runtime.conversations.files.get(`${id}.jsonl`)!}{"par`);
    await shared.sealed(a, id);
    expect(shared.transcripts.files.get(`${id}/${id}.jsonl`)!.toString()).toMatch(/}\n$/);
  });

  it.each<[string, Parameters<typeof start>[0], object]>([
    ["at a node's own folder", { node: "one" }, {}],
    ["with `persistSession: false`", VOLUME, { persistSession: false }],
  ])("nothing is stored of a session %s", async (_, place, options) => {
    await shared.world.close();
    start(place);
    const id = await shared.begin(a, "one", options);
    shared.answer(a, id, "one");
    await a.waitForEvent(id, "turn.ended");
    await shared.world.clock.pass(1_000);
    expect([...shared.transcripts.manifests]).toEqual([]);
  });
});

it("a turn that waits at a limit is stored with the request that it will send again", async () => {
  const id = await shared.begin(a, "one", { onLimit: "wait" });
  a.runtime.conversations.append(`${id}.jsonl`, '{"text":"refused"}');
  const { promptId } = a.runtime.lastProcess(id);
  const limit = { window: "five_hour", resetsAt: shared.world.clock.now() + 3_600_000 };
  a.runtime.lastProcess(id).say(resultSignal({ isError: true, limit, promptIds: [promptId] }), { type: "idle" });
  await expect.poll(() => shared.transcripts.manifests.get(id)).toMatchObject({ eventId: 0, files: [{ size: 19 }] });
  expect((await a.backend.rows.get(id))!.state).toMatchObject({
    waiting: { kind: "usage_limit" },
    lastTurnEventId: null,
  });
});

describe("a session that is given up", () => {
  it("a shutdown in a turn stores the conversation once the process has ended, before the session is released", async () => {
    const id = await shared.open(a);
    await reply(a, id, "two");
    a.runtime.conversations.append(`${id}.jsonl`, '{"text":"half"}');
    shared.transcripts.before = async () => void (owned = (await b.backend.rows.get(id))!.owner?.nodeId);
    let owned: string | undefined;
    await a.engine.drain();
    expect(owned).toBe(a.backend.nodeId);
    expect((await b.backend.rows.get(id))!.owner).toBeUndefined();
    expect(shared.transcripts.files.get(`${id}/${id}.jsonl`)!.toString()).toContain("half");
  });

  it("an owner that has lost its lease writes nothing more", async () => {
    const id = await shared.open(a);
    const before = shared.transcripts.manifests.get(id);
    await reply(a, id, "two");
    const gate = new Gate();
    gate.closed = true;
    shared.transcripts.before = async (what) => (what === "seal" ? gate.pass() : undefined);
    shared.answer(a, id, "two");
    await gate.arrived;
    shared.lose(a);
    await reply(b, id, "three");
    gate.open();
    await shared.world.clock.pass(100);
    expect(shared.transcripts.manifests.get(id)).toEqual(before);
  });

  it("a node that only records the loss of a turn stores nothing", async () => {
    const id = await shared.open(a);
    const { writes } = shared.transcripts;
    const [stored, sealedBefore] = [writes.length, shared.transcripts.manifests.get(id)];
    await reply(a, id, "two");
    shared.lose(a);
    b.runtime.conversations.append(`${id}.jsonl`, '{"text":"stale"}');
    await b.engine.get("local", id);
    await b.waitForEvent(id, "turn.ended", 2);
    await shared.world.clock.pass(1_000);
    expect([writes.length, shared.transcripts.manifests.get(id)]).toEqual([stored, sealedBefore]);
  });
});
