import { getEventListeners } from "node:events";

import { beforeEach, describe, expect, it } from "vitest";

import type { Command, CommandReply } from "../../src/domain/command.ts";
import { initialState } from "../../src/domain/session.ts";
import { type InboxItem, type Lease, NoAnswerError, type SessionBackend } from "../../src/engine/ports.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { storeSuite } from "./store-suite.ts";

storeSuite("memory", () => {
  let now = 1_000_000;
  const store = createMemoryStore({ now: () => now });
  const advance = (ms: number): void => void (now += ms);
  return Promise.resolve({ connect: (nodeId) => store.connect(nodeId), advance, close: () => Promise.resolve() });
});

const command = (id: string): Command => ({ id, principal: "local", kind: "interrupt", data: { by: "x" } });
const done = (cursor: number): CommandReply => ({ ok: true, cursor });
const iterator = <T>(items: AsyncIterable<T>): AsyncIterator<T> => items[Symbol.asyncIterator]();
const ended = { done: true, value: undefined };

/** What the suite has no room for: the ends of tails and inboxes, and what is bounded. */
describe("store: memory, ends and bounds", () => {
  let a: SessionBackend;
  let b: SessionBackend;
  let lease: Lease;
  let end: AbortController;
  let last: number;

  beforeEach(async () => {
    const store = createMemoryStore();
    [a, b, end, last] = [store.connect("a"), store.connect("b"), new AbortController(), 0];
    await a.heartbeat(60_000);
    await a.create({ id: "s", principal: "local", spec: { cwd: "/" }, state: initialState(0), at: 0 });
    lease = (await a.claim("s"))!;
  });

  async function write(count: number): Promise<void> {
    last += count;
    const event = { type: "notice", data: { kind: "warning", message: "n" } } as const;
    const state = { ...initialState(0), lastEventId: last };
    await a.append(lease, { events: Array.from({ length: count }, () => event), at: 0, state });
  }

  async function nextItem(items: AsyncIterator<InboxItem>): Promise<InboxItem> {
    const { done: over, value } = await items.next();
    if (over) throw new Error("the inbox has ended");
    return value;
  }

  it.each(["tail", "inbox"] as const)("ends a %s at the abort, whether it sleeps or has more", async (reader) => {
    const open = (): AsyncIterator<unknown> =>
      iterator<unknown>(reader === "tail" ? b.tail("s", 1, end.signal) : a.inbox(lease, end.signal));
    const sleeping = open().next();
    end.abort();
    expect(await sleeping).toEqual(ended);
    expect(await open().next()).toEqual(ended);
    end = new AbortController();
    await write(3);
    const sent = ["c1", "c2"].map((id) => b.send("s", command(id), 60_000));
    const busy = open();
    expect((await busy.next()).done).toBe(false);
    end.abort();
    expect(await busy.next()).toEqual(ended);
    await b.close();
    await Promise.allSettled(sent);
  });

  it("listens once to a signal however long the tail, and not at all once it was left", async () => {
    const listening = (): number => getEventListeners(end.signal, "abort").length;
    const tail = iterator(b.tail("s", 1, end.signal));
    for (let n = 1; n <= 50; n++) {
      const next = tail.next();
      await write(1);
      expect((await next).value).toMatchObject({ id: n });
    }
    expect(listening()).toBe(1);
    await tail.return?.();
    expect(listening()).toBe(0);
  });

  it("wakes a thousand tails of a session", async () => {
    const tails = Array.from({ length: 1000 }, () => iterator(b.tail("s", 1, new AbortController().signal)));
    const first = Promise.all(tails.map((tail) => tail.next()));
    await write(2);
    expect((await first).every(({ value }) => (value as { id: number }).id === 1)).toBe(true);
  });

  it("ends what waits for a session when the session is purged", async () => {
    const tail = iterator(b.tail("s", 1, end.signal)).next();
    const inbox = iterator(a.inbox(lease, end.signal)).next();
    await a.release(lease);
    const sent = Promise.allSettled([b.send("s", command("c"), 60_000)]);
    expect(await b.purge({ before: 1, statuses: ["idle"], limit: 1 })).toBe(1);
    expect([await tail, await inbox]).toEqual([ended, ended]);
    expect(await sent).toMatchObject([{ reason: { name: "NoAnswerError" } }]);
    await expect(b.send("s", command("d"), 60_000)).rejects.toThrow(NoAnswerError);
    expect(await iterator(b.tail("s", 1, end.signal)).next()).toEqual(ended);
  });

  it("does not bring a command twice to the owner that has it in hand, and keeps its late answer", async () => {
    const inbox = iterator(a.inbox(lease, end.signal));
    const gaveUp = b.send("s", command("c1"), 20);
    const item = await nextItem(inbox);
    await expect(gaveUp).rejects.toThrow(NoAnswerError);
    const again = [b.send("s", command("c1"), 60_000), b.send("s", command("c2"), 60_000)];
    const other = await nextItem(inbox);
    expect(other.command.id).toBe("c2");
    await other.ack(done(2));
    await item.ack(done(1));
    expect(await Promise.all(again)).toEqual([done(1), done(2)]);
    await expect(b.send("s", command("c3"), 20)).rejects.toThrow(NoAnswerError);
  });

  it("remembers the last thousand answers of a session", async () => {
    const inbox = iterator(a.inbox(lease, end.signal));
    for (let n = 0; n <= 1000; n++) {
      const sent = b.send("s", command(String(n)), 60_000);
      await (await nextItem(inbox)).ack(done(n));
      await sent;
    }
    expect(await b.send("s", command("1"), 20)).toEqual(done(1));
    await expect(b.send("s", command("0"), 20)).rejects.toThrow(NoAnswerError);
  });

  it("refuses everything once closed, ends its readers, and leaves other nodes alone", async () => {
    const tail = iterator(a.tail("s", 1, end.signal)).next();
    const inbox = iterator(a.inbox(lease, end.signal));
    const sent = Promise.allSettled([a.send("s", command("c"), 60_000)]);
    const item = await nextItem(inbox);
    const more = inbox.next();
    await a.close();
    await a.close();
    expect([await tail, await more]).toEqual([ended, ended]);
    expect(await sent).toMatchObject([{ reason: { message: "the store was closed" } }]);
    const session = { id: "t", principal: "local", spec: { cwd: "/" }, state: initialState(0), at: 0 };
    const calls = [
      () => a.heartbeat(1),
      () => a.create(session),
      () => a.get("s"),
      () => a.update("s", 1, {}),
      () => a.list({ principal: "local", limit: 1 }),
      () => a.claim("s"),
      () => a.release(lease),
      () => write(1),
      () => a.read("s", 1, 1),
      () => iterator(a.tail("s", 1, end.signal)).next(),
      () => a.send("s", command("c"), 20),
      () => iterator(a.inbox(lease, end.signal)).next(),
      () => a.purge({ before: 1, statuses: ["idle"], limit: 1 }),
      () => item.ack(done(1)),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow("closed");
    expect(await b.get("s")).toMatchObject({ id: "s", owner: { nodeId: "a", alive: true } });
  });

  it("throws when state and log disagree about the last event, and changes nothing", async () => {
    const state = { ...initialState(0), lastEventId: 2 };
    await expect(a.append(lease, { events: [], at: 1, state })).rejects.toThrow("state and log disagree");
    await expect(a.create({ id: "t", principal: "x", spec: { cwd: "/" }, state, at: 0 })).rejects.toThrow("disagree");
    expect([await b.get("t"), await b.get("s")]).toMatchObject([
      undefined,
      { updatedAt: 0, state: { lastEventId: 0 } },
    ]);
  });
});
