import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Feed, FeedItem, FeedPage } from "../../src/engine/ports.ts";
import { EventStream } from "../../src/mcp/events/stream.ts";

/** Stream of events over a feed that the test plays. */

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const page = (over: Partial<FeedPage> = {}): FeedPage => ({
  items: [],
  start: "start",
  cursor: "head",
  isTruncated: false,
  hasMore: false,
  ...over,
});
const item = (eventId: number) => ({
  name: "turn.ended" as const,
  sessionId: "s",
  eventId,
  at: 0,
  cursor: `after ${String(eventId)}`,
});

const messageOf = (error: unknown) =>
  typeof error === "object" && error !== null && "message" in error ? error.message : undefined;

/** Runs a stream over `pages`, one for each read; a text is the failure of a read. Wakes with `wake`. */
function play(pages: (FeedPage | string)[]) {
  const heard: string[] = [];
  const stop = new AbortController();
  let wake: () => void = () => undefined;
  const feed: Feed = {
    read: async () => {
      const next = pages.shift() ?? page();
      return typeof next === "string" ? Promise.reject(new Error(next)) : Promise.resolve(next);
    },
    async *changes(signal) {
      while (!signal.aborted) {
        yield;
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    },
  };
  const present = async ({ eventId, name }: FeedItem) =>
    Promise.resolve(
      eventId < 0 ? undefined : { eventId: String(eventId), name, timestamp: "2026-01-01T00:00:00.000Z", data: {} },
    );
  const parts = { feed, present, filterOf: async () => Promise.resolve({}) };
  const stream = new EventStream({ name: "turn.ended", filter: {}, after: undefined, since: undefined }, parts, {
    principal: "local",
    send: async (kind, { cursor, error, eventId, truncated }) => {
      const said = [kind, eventId, cursor, truncated === true ? "truncated" : undefined, messageOf(error)];
      heard.push(said.filter((each) => typeof each === "string").join(" "));
      return Promise.resolve();
    },
    describe: (error) => ({ message: String(error) }),
  });
  return { heard, stop, run: stream.run(stop.signal), wake: () => wake(), pages };
}

it("a stream has a heartbeat with the last cursor every 15 s, and ends when its signal aborts", async () => {
  const { heard, run, stop } = play([page({ items: [item(1)], cursor: "head" })]);
  await vi.advanceTimersByTimeAsync(14_999);
  expect(heard).toEqual(["active start", "event 1 after 1"]);
  await vi.advanceTimersByTimeAsync(15_001);
  expect(heard.slice(2)).toEqual(["heartbeat head", "heartbeat head"]);
  stop.abort();
  await run;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(heard).toHaveLength(4);
});

it("a store that fails is reported once, and the stream goes on where it was", async () => {
  vi.useRealTimers();
  const { heard, run, stop, wake } = play([page(), "gone", page({ items: [item(1)] }), "gone again"]);
  await expect.poll(() => heard).toEqual(["active start"]);
  wake();
  await expect.poll(() => heard).toEqual(["active start", "error Error: gone", "event 1 after 1"]);
  wake();
  await expect.poll(() => heard.slice(3)).toEqual(["error Error: gone again"]);
  stop.abort();
  await run;
});

it("a stream over a closed store waits for its end, without reading on at once", async () => {
  let looks = 0;
  const stop = new AbortController();
  const feed: Feed = {
    read: async () => Promise.resolve(page()),
    changes: () => {
      looks += 1;
      // Ends a stream that would never let this test go on.
      if (looks > 9) stop.abort();
      return new ReadableStream<void>({ start: (ending) => ending.close() })[Symbol.asyncIterator]();
    },
  };
  const parts = { feed, present: async () => Promise.resolve(undefined), filterOf: async () => Promise.resolve({}) };
  const heard: string[] = [];
  const stream = new EventStream({ name: "turn.ended", filter: {}, after: undefined, since: undefined }, parts, {
    principal: "local",
    send: async (kind) => Promise.resolve(void heard.push(kind)),
    describe: (error) => ({ message: String(error) }),
  });
  const run = stream.run(stop.signal);
  await vi.advanceTimersByTimeAsync(1_999);
  expect([looks, heard]).toEqual([1, ["active"]]);
  stop.abort();
  await run;
});

it("a gap in the middle of a stream is another `active` with a fresh cursor, before the events behind it", async () => {
  const gap = page({
    items: [item(7), item(-1), item(8)],
    start: "fresh",
    isTruncated: true,
    cursor: "after 8",
    hasMore: true,
  });
  const { heard, run, stop, wake } = play([page(), gap, page({ items: [item(9)] })]);
  await vi.advanceTimersByTimeAsync(0);
  wake();
  await vi.advanceTimersByTimeAsync(0);
  expect(heard).toEqual([
    "active start",
    "active fresh truncated",
    "event 7 after 7",
    "event 8 after 8",
    "event 9 after 9",
  ]);
  stop.abort();
  await run;
});
