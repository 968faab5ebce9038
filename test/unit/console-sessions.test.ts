import { describe, expect, it } from "vitest";
import type { SessionRow } from "../../src/console/wire.ts";
import { isUnfiltered, filtersOf, queryOf } from "../../console/src/sessions/filters.ts";
import { merge, rejoin } from "../../console/src/sessions/merge.ts";

const NONE = filtersOf(new URLSearchParams());

function row(id: string, updatedAt: number, rest: Partial<SessionRow> = {}): SessionRow {
  return {
    id,
    status: "idle",
    title: id,
    cwd: "/work",
    permissionMode: "default",
    createdAt: 0,
    updatedAt,
    turns: 0,
    costUsd: 0,
    waitsFor: [],
    requests: 0,
    queued: 0,
    held: 0,
    background: 0,
    lastEventId: updatedAt,
    ...rest,
  };
}

const ids = (rows: readonly SessionRow[]) => rows.map(({ id }) => id).join(" ");

describe("the filters of the list", () => {
  it("the filters of the list are written to the address and read back from it", () => {
    const query = "status=running&status=error&text=log+in&cwd=%2Fwork%2Fshop";
    expect(queryOf(filtersOf(new URLSearchParams(query))).toString()).toBe(query);
    expect(queryOf(NONE).toString()).toBe("");
  });

  it("an unknown status and blank texts are not filters", () => {
    expect(filtersOf(new URLSearchParams("status=busy&status=idle")).statuses).toEqual(["idle"]);
    expect([NONE, { ...NONE, text: " " }, { ...NONE, cwd: "/" }].map(isUnfiltered)).toEqual([true, true, false]);
  });
});

describe("a changed session in the list", () => {
  const rows = [row("c", 30), row("b", 20), row("a", 10)];

  it("a changed session moves to the top of the list, like a new one", () => {
    const merged = merge(rows, [row("a", 40), row("d", 50)], { filters: NONE, hold: false });
    expect(ids(merged)).toBe("d a c b");
  });

  it("a changed session keeps its place while the user points at the list", () => {
    const merged = merge(rows, [row("a", 40, { title: "new" }), row("d", 50)], { filters: NONE, hold: true });
    expect(ids(merged)).toBe("d c b a");
    expect(merged.at(-1)?.title).toBe("new");
  });

  it("a changed session is omitted if it no longer matches, or is older than the known row", () => {
    const filters = { ...NONE, statuses: ["idle"] } as const;
    const changed = [row("a", 40, { status: "running" }), row("b", 19, { title: "old" }), row("d", 50)];
    const merged = merge(rows, changed, { filters, hold: false });
    expect(ids(merged)).toBe("d c b");
    expect(merged.at(-1)?.title).toBe("b");
  });

  it("a new session is hidden during a text search, which it may not match", () => {
    const filters = { ...NONE, text: "x" };
    expect(ids(merge(rows, [row("a", 40), row("d", 50)], { filters, hold: false }))).toBe("a c b");
  });
});

describe("a reloaded first page", () => {
  it("a reloaded first page keeps the older rows that were loaded after it", () => {
    const page = { sessions: [row("d", 50), row("c", 40)], next: "40" };
    expect(ids(rejoin(page, [row("c", 40), row("x", 45), row("b", 20), row("d", 10)]))).toBe("d c b");
  });

  it("a reloaded first page drops older rows if sessions may be missing between", () => {
    const page = { sessions: [row("d", 50), row("c", 40)], next: "40" };
    expect(ids(rejoin(page, [row("c", 30), row("b", 20)]))).toBe("d c");
  });

  it("a reloaded first page is the whole list if there is no next page", () => {
    expect(ids(rejoin({ sessions: [row("d", 50)] }, [row("b", 20)]))).toBe("d");
  });
});
