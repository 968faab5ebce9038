import { describe, expect, it } from "vitest";
import { FakeEngine } from "../support/tools/fake-engine.ts";
import { NOW } from "../support/tools/fake-session.ts";
import { listed, run, runOpen } from "../support/tools/run.ts";

describe("claude_code_session list", () => {
  it.each([
    [{}, {}],
    [{ status: "idle" }, { statuses: ["idle"] }],
    [{ status: ["idle", "error"] }, { statuses: ["idle", "error"] }],
    [{ since: 1_700_000_000_000 }, { since: 1_700_000_000_000 }],
    [{ since: "1700000000000" }, { since: 1_700_000_000_000 }],
    [{ since: "2026-01-31" }, { since: Date.UTC(2026, 0, 31) }],
    [{ since: "2026-01-31T09:00:00.5+02:00" }, { since: Date.UTC(2026, 0, 31, 7, 0, 0, 500) }],
    [
      { cwd: "/a", text: "login" },
      { cwd: "/a", text: "login" },
    ],
  ])("passes on %j", async (args, query) => {
    const engine = new FakeEngine();
    await runOpen(engine, { action: "list", ...args });
    expect(engine.queries).toEqual([{ principal: "local", limit: 51, ...query }]);
  });

  it.each([
    [{ since: "yesterday" }, /^Error \[INVALID_ARGUMENT\]: since: must be an ISO 8601 time .*, not "yesterday"\.$/],
    [{ since: "2026-01-31T09:00:00" }, /since: must be an ISO 8601 time with its zone/],
    [{ since: "2026-13-31" }, /since: must be/],
    [{ since: -1 }, /since: must be/],
    [{ status: "asleep" }, /status: must be .*waiting_permission/],
    [{ status: [] }, /status: must have at least 1 entry, not 0/],
    [{ limit: 0 }, /limit: must be at least 1/],
    [{ limit: 201 }, /limit: must be at most 200/],
    [{ pageToken: "2" }, /pageToken: is not valid/],
    [{ pageToken: Buffer.from('["x"]').toString("base64url") }, /pageToken: is not valid/],
    [{ sessionId: "s1" }, /sessionId: is not for action list, which takes: status, cwd, /],
  ])("refuses %j", async (args, text) => {
    const reply = await runOpen(new FakeEngine(), { action: "list", ...args });
    expect(reply.structured).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(reply.text).toMatch(text);
  });

  it.each([
    [{ action: "get", sessionId: "s1", limit: 5 }, "limit: is not for action get, which takes: sessionId, "],
    [{ action: "cancel", sessionId: "s1", includeSensitive: true }, "includeSensitive: is not for action cancel"],
    [{ action: "cancel" }, "sessionId: is required for action cancel."],
    [{ action: "purge" }, "action: must be one of list, get, cancel, interrupt,"],
  ])("explains a refusal like other actions: %j", async (args, text) => {
    const reply = await runOpen(new FakeEngine(), args);
    expect(reply.text).toContain(`Error [INVALID_ARGUMENT]: ${text}`);
  });

  function engineWith(count: number): FakeEngine {
    const engine = new FakeEngine();
    for (let index = 0; index < count; index += 1) {
      engine.add(`s${String(index)}`).updatedAt = NOW + index;
    }
    return engine;
  }

  async function pages(engine: FakeEngine, args: object): Promise<string[][]> {
    const all: string[][] = [];
    let pageToken: string | undefined;
    do {
      const answer = await listed(engine, { ...args, ...(pageToken !== undefined && { pageToken }) });
      all.push(answer.sessions.map(({ sessionId }) => String(sessionId)));
      pageToken = answer.nextPageToken;
    } while (pageToken !== undefined);
    return all;
  }

  it("lists the newest first, page by page, each once", async () => {
    const engine = engineWith(7);
    expect(await pages(engine, { limit: 3 })).toEqual([["s6", "s5", "s4"], ["s3", "s2", "s1"], ["s0"]]);
    expect(await pages(engine, { limit: 7 })).toHaveLength(1);
    const bad = Buffer.from(JSON.stringify([NOW, "s1"]));
    expect((await listed(engine, { pageToken: bad.toString("base64url") })).sessions).toMatchObject([
      { sessionId: "s0" },
    ]);
    const reply = await run(engine, "_session", { action: "list", pageToken: `${bad.toString("base64url")}!` });
    expect(reply.structured).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("ends a page when the answer is full, and loses nothing", async () => {
    const engine = engineWith(200);
    const first = await run(engine, "_session", { action: "list", limit: 200 });
    expect(Buffer.byteLength(first.text)).toBeLessThanOrEqual(32_768);
    const all = await pages(engine, { limit: 200 });
    expect(all.length).toBeGreaterThan(1);
    expect(all.flat()).toEqual(Array.from({ length: 200 }, (_, index) => `s${String(199 - index)}`));
  });

  it("omits sessions that no longer have the status, and continues after the found ones", async () => {
    const engine = engineWith(6);
    for (const session of engine.sessions.values()) session.run();
    const list = engine.list.bind(engine);
    // Like the engine: turns of a dead owner are recorded as lost during the listing, which makes their sessions the newest.
    engine.list = async (query) => {
      const found = await list(query);
      return found.map((record) =>
        record.id === "s4"
          ? { ...record, updatedAt: NOW + 99, state: { ...record.state, turn: null, lastOutcome: "lost" as const } }
          : record,
      );
    };
    const expected = [["s5", "s3"], ["s2", "s1"], ["s0"]];
    expect(await pages(engine, { limit: 2, status: "running" })).toEqual(expected);
  });
});
