import { expect, it } from "vitest";
import type { UseDatabase } from "../../src/store/postgres/feed-table.ts";
import { databaseFeed } from "../../src/store/postgres/feed-table.ts";
import { SessionWatch } from "../../src/store/session-watch.ts";

/** Looks for changes of the feed on PostgreSQL, which the test answers in place of a database. */

class Watch extends SessionWatch {
  protected override onReader(): void {
    // Changes are announced by the test.
  }
}

it("readers of the feed that are woken together ask the database once, and one that comes later asks anew", async () => {
  let asked = 0;
  const use: UseDatabase = async () => {
    asked += 1;
    return Promise.resolve({ seq: asked, n: null } as never);
  };
  const watch = new Watch();
  const over = new AbortController();
  const feed = databaseFeed(use, watch);
  const readers = [1, 2, 3].map(() => feed.changes(over.signal)[Symbol.asyncIterator]());
  const next = async () => Promise.all(readers.map(async (reader) => (await reader.next()).done));
  expect([await next(), asked]).toEqual([[false, false, false], 1]);
  const woken = next();
  watch.notify("", ["feed"]);
  expect([await woken, asked]).toEqual([[false, false, false], 2]);
  await feed.changes(over.signal)[Symbol.asyncIterator]().next();
  expect(asked).toBe(3);
  over.abort();
});
