import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SessionState } from "../../src/domain/session.ts";
import { jsonBytes } from "../../src/view/size.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { runList, run, runWithSensitiveDetails } from "../kit/tools/run.ts";
import { amount } from "../kit/runner/amount.ts";
import { callOf } from "../kit/tools/fake-engine.ts";

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
  ])("a list with %j is passed on", async (args, query) => {
    const engine = new FakeEngine();
    await runWithSensitiveDetails(engine, { action: "list", ...args });
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
  ])("a list with %j is refused", async (args, text) => {
    const reply = await runWithSensitiveDetails(new FakeEngine(), { action: "list", ...args });
    expect(reply.structured).toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(reply.text).toMatch(text);
  });

  it.each([
    [{ action: "get", sessionId: "s1", limit: 5 }, "limit: is not for action get, which takes: sessionId, "],
    [{ action: "cancel", sessionId: "s1", includeSensitive: true }, "includeSensitive: is not for action cancel"],
    [{ action: "cancel" }, "sessionId: is required for action cancel."],
    [{ action: "purge" }, "action: must be one of list, get, cancel, interrupt,"],
  ])("a refusal is explained as for other actions: %j", async (args, text) => {
    const reply = await runWithSensitiveDetails(new FakeEngine(), args);
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
      const answer = await runList(engine, { ...args, ...(pageToken !== undefined && { pageToken }) });
      all.push(answer.sessions.map(({ sessionId }) => String(sessionId)));
      pageToken = answer.nextPageToken;
    } while (pageToken !== undefined);
    return all;
  }

  it("the newest sessions are listed first, page by page, each once", async () => {
    const engine = engineWith(7);
    expect(await pages(engine, { limit: 3 })).toEqual([["s6", "s5", "s4"], ["s3", "s2", "s1"], ["s0"]]);
    expect(await pages(engine, { limit: 7 })).toHaveLength(1);
    const bad = Buffer.from(JSON.stringify([NOW, "s1"]));
    expect((await runList(engine, { pageToken: bad.toString("base64url") })).sessions).toMatchObject([
      { sessionId: "s0" },
    ]);
    const reply = await run(engine, "_session", { action: "list", pageToken: `${bad.toString("base64url")}!` });
    expect(reply.structured).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("a page ends when the 32,768 bytes of an answer are full, and no session is lost", async () => {
    const engine = engineWith(200);
    const first = await run(engine, "_session", { action: "list", limit: 200 });
    expect(Buffer.byteLength(first.text)).toBeLessThanOrEqual(32_768);
    const all = await pages(engine, { limit: 200 });
    expect(all.length).toBeGreaterThan(1);
    expect(all.flat()).toEqual(Array.from({ length: 200 }, (_, index) => `s${String(199 - index)}`));
  });

  it("a session that no longer has the status is omitted, and the list continues after the found sessions", async () => {
    const engine = engineWith(6);
    for (const session of engine.sessions.values()) session.startTurn();
    const list = engine.list.bind(engine);
    // Like the engine, records the turn of a dead owner as lost during the listing, so that the session becomes the newest.
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

/** Builds a call on stdio. */
function ownCall() {
  const call = callOf();
  return { ...call, client: { ...call.client, isLocal: true } };
}

interface ListedSession {
  sessionId: string;
  title?: string;
  folder?: string;
}

async function ownList(engine: FakeEngine, args: object = {}): Promise<ListedSession[]> {
  const { structured } = await run(engine, "_session", { action: "list", limit: 200, ...args }, ownCall());
  return (structured as unknown as { sessions: ListedSession[] }).sessions;
}

describe("a session in a list", () => {
  const id = (index: number) => `e7d7bc4e-4c59-446b-bc3e-b61235594${String(100 + index)}`;
  const MODES = ["default", "acceptEdits", "bypassPermissions"] as const;

  function realistic(): FakeEngine {
    const engine = new FakeEngine();
    const titles = [
      undefined,
      "Mend the login of the shop",
      "Upgrade the database driver and run every test once more",
    ];
    for (let index = 0; index < 20; index += 1) {
      const [title, permissionMode] = [titles[index % 3], MODES[index % 3]!];
      const cwd = `/home/me/projects/${["shop", "shop-api", "infrastructure"][index % 3]!}`;
      const session = engine.add(id(index), { cwd, permissionMode, ...(index % 2 === 0 && { model: "opus" }) });
      session.title = title;
      session.state.totals = { turns: 7 * index, costUsd: 0.031_4 * index };
      session.state.reported = { model: "claude-opus-5-5", permissionMode };
      session.state.lastOutcome = "done";
      if (index % 5 === 0) session.startTurn();
      if (index % 10 === 0) session.openRequest();
    }
    return engine;
  }

  it("a session takes at most 300 bytes, title and folder included, and twenty take 6,000", async () => {
    const sessions = await ownList(realistic());
    const sizes = sessions.map((session) => jsonBytes(session) + 1);
    process.stdout.write(`LIST of 20 sessions: ${String(jsonBytes(sessions))} bytes (${sizes.join(", ")})\n`);
    expect(sessions).toHaveLength(20);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(300);
    expect(jsonBytes(sessions)).toBeLessThanOrEqual(6_000);
    // Every session has its folder and the fields by which a caller chooses.
    for (const session of sessions) {
      expect(session.folder).toMatch(/^(?:shop|shop-api|infrastruc.*)$/);
      for (const key of [
        "status",
        "createdAt",
        "lastActiveAt",
        "model",
        "permissionMode",
        "totalTurns",
        "totalCostUsd",
      ])
        expect(session).toHaveProperty(key);
      for (const key of ["requested", "reported", "pending", "queued", "lastOutcome"])
        expect(session).not.toHaveProperty(key);
    }
    const titled = sessions.flatMap(({ title }) => title ?? []);
    expect(titled).toHaveLength(13);
    expect(titled.filter((title) => !/^(?:Mend the login of the shop|(?:Mend|Upgrade) the .*…)$/.test(title))).toEqual(
      [],
    );
  });

  it("a long model name is reduced to its last part, and leaves room for title and folder", async () => {
    const engine = realistic();
    const model = "us.anthropic.claude-opus-4-5-20251101-v1:0";
    for (const { state } of engine.sessions.values())
      state.reported.model = `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${model}`;
    const sessions = await ownList(engine);
    for (const session of sessions) {
      expect(jsonBytes(session) + 1).toBeLessThanOrEqual(300);
      expect(session).toMatchObject({ model: expect.stringMatching(/^us\.anthropic\.claude-opus-4/) });
      expect(session.folder ?? session.title).toMatch(/^(?:shop|infra|Mend|Upgr)/);
    }
  });

  const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: "binary", maxLength: 300 }));
  const anySession = fc.record({
    title: fc.option(text, { nil: undefined }),
    cwd: text.map((name) => `/home/${name}`),
    model: fc.option(fc.string({ minLength: 1, maxLength: 200 }), { nil: undefined }),
    reported: fc.option(fc.string({ minLength: 1, maxLength: 200 }), { nil: undefined }),
    mode: fc.constantFrom(...MODES),
    turns: fc.nat(1_000_000),
    costUsd: fc.double({ min: 0, max: 100_000, noNaN: true }),
    asks: fc.boolean(),
    held: fc.nat(20),
  });

  it("a session takes at most 300 bytes, whatever its title, folder and model", async () => {
    await fc.assert(
      fc.asyncProperty(anySession, async ({ asks, costUsd, cwd, held, mode, model, reported, title, turns }) => {
        const engine = new FakeEngine();
        const added = engine.add(id(1), { cwd, permissionMode: mode, ...(model !== undefined && { model }) });
        added.title = title;
        added.state.totals = { turns, costUsd };
        added.state.reported = { permissionMode: "plan", ...(reported !== undefined && { model: reported }) };
        added.state.queue = Array.from({ length: held }, () => ({ promptId: "p", eventId: 1, held: true }));
        if (asks) added.startTurn();
        if (asks) added.openRequest();
        const [shown] = await ownList(engine);
        expect(jsonBytes(shown) + 1).toBeLessThanOrEqual(300);
        expect(shown).toMatchObject({ sessionId: id(1), permissionMode: "plan", totalTurns: turns });
        expect("model" in shown!).toBe((reported ?? model) !== undefined);
      }),
      { numRuns: amount(50, 2_000) },
    );
  });

  it.each<[string, Partial<SessionState>, { model?: string }, object]>([
    ["an alias is not another model", { reported: { model: "claude-opus-5-5" } }, { model: "opus" }, {}],
    [
      "another model",
      { reported: { model: "claude-haiku-5" } },
      { model: "opus" },
      { requested: { model: "opus" }, model: "claude-haiku-5" },
    ],
    [
      "another mode",
      { reported: { permissionMode: "plan" } },
      {},
      { requested: { permissionMode: "default" }, permissionMode: "plan" },
    ],
    ["a failure", { lastOutcome: "lost" }, {}, { status: "error", lastOutcome: "lost" }],
    ["an interrupt", { lastOutcome: "interrupted" }, {}, { status: "idle", lastOutcome: "interrupted" }],
    ["held prompts", { queue: [{ promptId: "p", eventId: 1, held: true }] }, {}, { queued: 1, held: 1 }],
  ])("a session shows what is not as usual: %s", async (_, state, options, shown) => {
    const engine = new FakeEngine();
    const added = engine.add("s1", { cwd: "/a", ...options });
    Object.assign(added.state, state);
    const usual = ["sessionId", "status", "folder", "createdAt", "lastActiveAt", "permissionMode", "totalTurns"];
    const [session] = await ownList(engine);
    expect(session).toMatchObject(shown);
    const model = state.reported?.model ?? options.model;
    const keys = [...usual, "totalCostUsd", ...(model === undefined ? [] : ["model"]), ...Object.keys(shown)];
    expect(Object.keys(session!).toSorted()).toEqual([...new Set(keys)].toSorted());
  });

  it("a session has its title and the last part of its cwd on stdio, or masked where the operator allows it", async () => {
    const engine = new FakeEngine();
    engine.add("s1", { cwd: "/secret/shop" }).title = "Mend the login";
    expect((await ownList(engine))[0]).toMatchObject({ title: "Mend the login", folder: "shop" });
    const [elsewhere] = (await runList(engine)).sessions;
    for (const key of ["title", "folder"]) expect(elsewhere).not.toHaveProperty(key);
    const mask = (fields: object) => ({ ...fields, title: "[masked]" });
    const allowed = await runWithSensitiveDetails(engine, { action: "list" }, { mask });
    expect(allowed.structured).toMatchObject({ sessions: [{ title: "[masked]", folder: "shop" }] });
    expect(allowed.text).not.toContain("secret");
  });
});
