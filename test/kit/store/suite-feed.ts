import { expect, it } from "vitest";
import type { SessionEvent } from "../../../src/domain/event.ts";
import { FEED_NAMES, type FeedName } from "../../../src/domain/feed.ts";
import { OpenRequest, type PermissionRequest } from "../../../src/domain/permission.ts";
import {
  type FeedItem,
  FencedError,
  type FeedPage,
  type FeedQuery,
  type SessionBackend,
} from "../../../src/engine/ports.ts";
import { FEED_KEPT_MS } from "../../../src/store/feed-cursor.ts";
import { iterator, never, notice, range, waits, type World, write } from "./vocabulary.ts";

/** Tests of the feed: the events that wake callers, across all sessions. */

const ended: SessionEvent = {
  type: "turn.ended",
  data: {
    turnId: "t",
    outcome: "done",
    isError: false,
    durationMs: 1,
    durationApiMs: 1,
    numTurns: 1,
    costUsd: 0,
    sessionTurns: 1,
    sessionCostUsd: 0,
  },
};
const verified: SessionEvent = {
  type: "verification.ended",
  data: { turnId: "t", verification: { status: "passed", attempts: 1, of: 1, commands: [] } },
};

function request(requestId: string): PermissionRequest {
  return { requestId, kind: "permission", toolName: "Bash", input: {}, toolUseId: "u" };
}

function openRequest(requestId: string): OpenRequest {
  const clock = { ageMs: 0, leftMs: 1, approverMs: 0, approverLeftMs: 1 };
  const times = { createdAt: 0, expiresAt: 1, approverSince: 0, approverDeadline: 1 };
  const rest = { kind: "permission", eventId: 1, toolName: "Bash", approver: "caller", seenWhole: true };
  return OpenRequest.parse({ requestId, clock, ...times, ...rest });
}

const WAITS: FeedQuery = { principal: "local", name: "session.waits", filter: {}, limit: 100 };
const query = (over: Partial<FeedQuery> = {}): FeedQuery => ({ ...WAITS, ...over });
const idsOf = ({ items }: FeedPage): number[] => items.map(({ eventId }) => eventId);

/** Returns the present end of the feed. */
async function endOf(node: SessionBackend): Promise<string> {
  return (await node.feed.read(query())).cursor;
}

async function readAll(node: SessionBackend, first: FeedQuery): Promise<{ items: FeedItem[]; cursors: string[] }> {
  const items: FeedItem[] = [];
  const cursors: string[] = [];
  for (let after = first.after; ; after = cursors.at(-1)) {
    const page = await node.feed.read({ ...first, after });
    items.push(...page.items);
    cursors.push(page.cursor);
    if (!page.hasMore) return { items, cursors };
  }
}

export function feedTests(world: () => World): void {
  it("the feed lists the events of the four kinds, in order, and no others", async () => {
    const { a, b, createOwned } = world();
    const { id, lease } = await createOwned();
    const after = await endOf(b);
    const { state } = (await a.rows.get(id))!;
    // The second request is answered in the same append, by a rule.
    const asked: SessionEvent[] = ["open", "answered"].map((of) => ({ type: "permission.asked", data: request(of) }));
    const question: SessionEvent = { type: "question.asked", data: { ...request("question"), kind: "question" } };
    const events = [notice("1"), waits(), ...asked, verified, question, ended];
    const requests = [openRequest("open"), openRequest("question")];
    await a.log.append(lease, { events, at: 5, state: { ...state, requests, lastEventId: events.length } });
    await write(a, lease, [notice("8"), ended], 6);
    const pages = await Promise.all(FEED_NAMES.map(async (name) => b.feed.read(query({ name, after }))));
    const found = pages.flatMap(({ items }) =>
      items.map(({ at, eventId, name, sessionId }) => [name, sessionId, eventId, at]),
    );
    const expected: [FeedName, number, number][] = [
      ["turn.ended", 7, 5],
      ["turn.ended", 9, 6],
      ["answer.needed", 3, 5],
      ["answer.needed", 6, 5],
      ["session.waits", 2, 5],
      ["verification.ended", 5, 5],
    ];
    expect(found).toEqual(expected.map(([name, eventId, at]) => [name, id, eventId, at]));
    expect(pages.map(({ cursor }) => cursor)).toEqual(FEED_NAMES.map(() => pages[0]!.cursor));
  });

  it("an append that is refused leaves nothing in the feed", async () => {
    const { a, b, createOwned } = world();
    const { id, lease } = await createOwned();
    const after = await endOf(b);
    const { state } = (await a.rows.get(id))!;
    const change = { events: [waits()], at: 1, state: { ...state, lastEventId: 1 } };
    await expect(a.log.append({ ...lease, epoch: 0 }, change)).rejects.toThrow(FencedError);
    await expect(a.log.append(lease, { ...change, state: { ...state, lastEventId: 7 } })).rejects.toThrow("disagree");
    expect(await b.feed.read(query({ after }))).toEqual({
      items: [],
      start: after,
      cursor: after,
      isTruncated: false,
      hasMore: false,
    });
    await a.log.append(lease, change);
    expect(idsOf(await b.feed.read(query({ after })))).toEqual([1]);
  });

  it("appends of many sessions at the same moment are all in the feed, in the order of each log", async () => {
    const { a, b, createOwned } = world();
    const owned = await Promise.all(range(1, 8).map(async () => createOwned()));
    const after = await endOf(b);
    for (const _ of range(1, 3)) await Promise.all(owned.map(async ({ lease }) => write(a, lease, [waits(), waits()])));
    const { items } = await b.feed.read(query({ after }));
    for (const { id } of owned)
      expect(items.filter(({ sessionId }) => sessionId === id).map(({ eventId }) => eventId)).toEqual(range(1, 6));
    expect(items).toHaveLength(48);
  });

  it("the feed of a principal has no items of others, and can be restricted to a session or a folder", async () => {
    const { a, b, createOwned } = world();
    const after = await endOf(b);
    const folder = `/repo/"x"\u{1f642}`;
    const [one, two, other] = [
      await createOwned(),
      await createOwned({ spec: { cwd: folder } }),
      await createOwned({ principal: "Zoë", spec: { cwd: folder } }),
    ];
    for (const { lease } of [one, two, other]) await write(a, lease, [waits()]);
    const found = async (over: Partial<FeedQuery>) =>
      (await b.feed.read(query({ after, ...over }))).items.map(({ sessionId }) => sessionId);
    expect(await found({})).toEqual([one.id, two.id]);
    expect(await found({ principal: "Zoë" })).toEqual([other.id]);
    expect(await found({ principal: "nobody" })).toEqual([]);
    expect(await found({ filter: { sessionId: one.id } })).toEqual([one.id]);
    expect(await found({ filter: { sessionId: other.id } })).toEqual([]);
    expect(await found({ filter: { cwd: folder } })).toEqual([two.id]);
    expect(await found({ filter: { cwd: "/rep" } })).toEqual([]);
    expect(await found({ filter: { cwd: folder, sessionId: one.id } })).toEqual([]);
  });

  it("pages of the feed have every item once, and without a cursor begin at the present end", async () => {
    const { a, b, createOwned } = world();
    const { lease } = await createOwned();
    await write(a, lease, [waits()]);
    const first = await b.feed.read(query());
    const { cursor } = first;
    expect(first).toEqual({ items: [], start: cursor, cursor, isTruncated: false, hasMore: false });
    expect(first.cursor).toMatch(/^[\w.-]+$/);
    await write(a, lease, [waits(), ended, waits(), waits(), ended]);
    const { cursors, items } = await readAll(b, query({ after: first.cursor, limit: 2 }));
    expect([items.map(({ eventId }) => eventId), cursors.length]).toEqual([[2, 4, 5], 2]);
    // Each item has the position after itself; the last position is behind the items of other kinds, too.
    const from = async (after: string) => idsOf(await b.feed.read(query({ after })));
    expect(await Promise.all(items.map(async (item) => from(item.cursor)))).toEqual([[4, 5], [5], []]);
    // A page starts right before its first item, behind items of other kinds.
    const { start } = await b.feed.read(query({ after: items[0]!.cursor }));
    expect([start === items[0]!.cursor, await from(start)]).toEqual([false, [4, 5]]);
    expect(await b.feed.read(query({ after: cursors.at(-1), name: "turn.ended" }))).toMatchObject({ items: [] });
    const exact = await b.feed.read(query({ after: first.cursor, limit: 3 }));
    expect([exact.hasMore, exact.cursor]).toEqual([false, cursors.at(-1)]);
  });

  it("a cursor of another store, or from before a restored backup, begins at the oldest item and is truncated", async () => {
    const { a, b, createOwned } = world();
    await write(a, (await createOwned()).lease, [waits(), waits()]);
    const [feedId] = (await endOf(b)).split(".");
    for (const after of ["0123456789ab.1", `${feedId!}.zzzz`])
      expect(await b.feed.read(query({ after }))).toMatchObject({
        items: [{ eventId: 1 }, { eventId: 2 }],
        isTruncated: true,
      });
    expect(await b.feed.read(query({ after: `${feedId!}.0` }))).toMatchObject({ isTruncated: false });
    for (const after of ["", "1", feedId!, `${feedId!}.`, `${feedId!}.-1`, `${feedId!}.1 OR 1`, "x".repeat(5000)])
      await expect(b.feed.read(query({ after }))).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("items before a time are left out on request, and the page says so", async () => {
    const { a, b, createOwned } = world();
    const { lease } = await createOwned();
    const after = await endOf(b);
    for (const at of [10, 20, 30]) await write(a, lease, [waits()], at);
    const read = async (since: number, over = {}) => {
      const page = await b.feed.read(query({ after, since, ...over }));
      return [idsOf(page), page.isTruncated];
    };
    expect(await Promise.all([0, 10, 20, 31].map(async (since) => read(since)))).toEqual([
      [[1, 2, 3], false],
      [[1, 2, 3], false],
      [[2, 3], true],
      [[], true],
    ]);
    expect(await read(31, { name: "turn.ended" })).toEqual([[], false]);
  });

  it("a purge deletes items after a week, and a cursor from before is truncated", async () => {
    const { a, b, createOwned, store } = world();
    const { lease } = await createOwned();
    const after = await endOf(b);
    await write(a, lease, [waits(), waits()], store.time());
    const [first] = (await b.feed.read(query({ after }))).items;
    const forget = async () => b.maintenance.forget();
    await store.advance(FEED_KEPT_MS - 60_000);
    await forget();
    expect(await b.feed.read(query({ after }))).toMatchObject({ items: [{}, {}], isTruncated: false });
    await write(a, lease, [waits()], store.time());
    await store.advance(120_000);
    await forget();
    for (const old of [after, first!.cursor])
      expect(await b.feed.read(query({ after: old }))).toMatchObject({ items: [{ eventId: 3 }], isTruncated: true });
    const middle = (await b.feed.read(query({ after }))).cursor;
    await store.advance(FEED_KEPT_MS);
    await forget();
    // An empty feed keeps its end: numbers are not given again.
    expect(await b.feed.read(query({ after: middle }))).toMatchObject({
      items: [],
      cursor: middle,
      isTruncated: false,
    });
    await write(a, lease, [waits()], store.time());
    expect(await b.feed.read(query({ after: middle }))).toMatchObject({ items: [{ eventId: 4 }], isTruncated: false });
  });

  it("items of a deleted session are left out of the feed", async () => {
    const { a, b, createOwned, store } = world();
    const { id, lease } = await createOwned();
    const after = await endOf(b);
    await write(a, lease, [waits()], store.time());
    await a.leases.release(lease);
    expect(await b.maintenance.purge({ before: 1e15, statuses: ["idle"], limit: 9, ids: [id] })).toBe(1);
    expect(await b.feed.read(query({ after }))).toMatchObject({ items: [], isTruncated: false });
  });

  it("readers of the feed wake at once, and with each addition by any node", async () => {
    const { a, b, createOwned } = world();
    const { lease } = await createOwned();
    const over = new AbortController();
    const readers = [a, b].map((node) => iterator(node.feed.changes(over.signal)));
    const next = async () => Promise.all(readers.map(async (reader) => (await reader.next()).done));
    expect(await next()).toEqual([false, false]);
    for (const event of [waits(), ended]) {
      const woken = next();
      await write(a, lease, [notice("no wake")]);
      await write(a, lease, [event]);
      expect(await woken).toEqual([false, false]);
    }
    const last = next();
    over.abort();
    expect(await last).toEqual([true, true]);
  });

  it("a store that closes ends the readers of its feed", async () => {
    const { b } = world();
    for await (const _ of b.feed.changes(never)) await b.close();
    // Ends later readers, too, which would take an error for an outage.
    for await (const _ of b.feed.changes(never)) throw new Error("a closed store has no changes");
    await expect(b.feed.read(query())).rejects.toThrow("closed");
  });
}
