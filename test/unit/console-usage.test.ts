import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createUsageReport } from "../../src/usage/days.ts";
import type { SessionEvent, TurnEnded } from "../../src/domain/event.ts";
import { initialState } from "../../src/domain/session.ts";
import type { SessionBackend, SessionLog } from "../../src/engine/ports.ts";
import { createYielder, QuarterCache } from "../../src/usage/quarter-cache.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { claimLease, session, TTL, write } from "../kit/store/vocabulary.ts";
import { withCaller } from "../kit/sessions/open-request.ts";

const started: SessionEvent = { type: "turn.started", data: { turnId: "t", origin: "self", promptIds: [] } };
const asked: SessionEvent = {
  type: "permission.asked",
  data: { requestId: "r", kind: "permission", toolName: "Bash", input: {}, toolUseId: "u" },
};
const answered: SessionEvent = {
  type: "permission.answered",
  data: { requestId: "r", toolName: "Bash", behavior: "allow", by: "caller" },
};
const ended = (over: Partial<TurnEnded> = {}): SessionEvent => ({
  type: "turn.ended",
  data: {
    turnId: "t",
    outcome: "done",
    isError: false,
    durationMs: 1000,
    durationApiMs: 10,
    numTurns: 1,
    costUsd: 0,
    sessionTurns: 1,
    sessionCostUsd: 0,
    ...over,
  },
});
const result = (tokens: number, costs: Record<string, number>): SessionEvent => ({
  type: "message",
  data: {
    message: {
      type: "result",
      num_turns: 1,
      usage: {
        input_tokens: tokens,
        output_tokens: 2,
        cache_read_input_tokens: 3,
        cache_creation_input_tokens: 4,
      },
      modelUsage: Object.fromEntries(Object.entries(costs).map(([model, costUSD]) => [model, { costUSD }])),
    },
  },
});

const NOW = Date.parse("2026-03-10T12:00:00Z");

type Log = readonly (readonly [at: string, event: SessionEvent])[];

describe("the usage figures of the console", () => {
  let node: SessionBackend;

  beforeEach(async () => {
    node = memoryStore({ tick: () => NOW }).connect("a");
    await node.leases.heartbeat(TTL);
  });
  afterEach(async () => node.close());

  /** Creates a session with `log` and returns the id. */
  async function keep(log: Log, { cwd = "/repo", principal = "ann" } = {}): Promise<string> {
    const at = Date.parse(log[0]?.[0] ?? "2026-03-01T00:00:00Z");
    const { record } = await node.rows.create(session({ principal, at, spec: { cwd } }));
    const lease = await claimLease(node, record.id);
    for (const [when, event] of log) await write(node, lease, [event], Date.parse(when));
    return record.id;
  }

  /** Events of a turn that starts and ends at `at`. */
  const turn = (at: string, costUsd: number, over: Partial<TurnEnded> = {}): Log => [
    [at, started],
    [at, ended({ costUsd, ...over })],
  ];

  const numbers = (query = {}, principal = "ann") => createUsageReport(node, () => NOW)(principal, query);

  it("usage figures are the sums of a principal's own sessions, by day, model and folder", async () => {
    await keep([
      ["2026-03-05T10:00:00Z", started],
      ["2026-03-05T10:01:00Z", asked],
      ["2026-03-05T10:04:00Z", answered],
      ["2026-03-05T10:05:00Z", result(10, { opus: 3, haiku: 1 })],
      ["2026-03-05T10:05:00Z", ended({ resultEventId: 4, costUsd: 4, durationMs: 300_000 })],
      ["2026-03-07T08:00:00Z", started],
      ["2026-03-07T08:01:00Z", ended({ outcome: "failed", isError: true, costUsd: 0.1, durationMs: 60_000 })],
    ]);
    await keep(turn("2026-03-07T09:00:00Z", 0.2, { outcome: "lost", isError: true }));
    await keep(turn("2026-03-07T09:30:00Z", 9, { outcome: "interrupted", isError: true }), { cwd: "/other" });
    await keep(turn("2026-03-07T09:00:00Z", 100), { principal: "bob" });

    const { days, directories, models, since, totals } = await numbers();
    expect(since).toBe(Date.parse("2026-02-08T12:00:00Z"));
    expect(totals).toEqual({
      turns: 4,
      failed: 2,
      costUsd: 13.3,
      tokens: { input: 10, output: 2, cacheRead: 3, cacheCreation: 4 },
      durationMs: 362_000,
      workedMs: 182_000,
      waitedMs: 180_000,
    });
    expect(days).toMatchObject([
      { day: "2026-03-05", turns: 1, failed: 0, costByModel: { opus: 3, haiku: 1 }, waitedMs: 180_000 },
      { day: "2026-03-07", turns: 3, failed: 2, costUsd: 9.3, costByModel: { "(unknown)": 9.3 } },
    ]);
    expect(models).toEqual([
      { model: "(unknown)", costUsd: 9.3 },
      { model: "opus", costUsd: 3 },
      { model: "haiku", costUsd: 1 },
    ]);
    expect(directories).toMatchObject([
      { cwd: "/other", sessions: 1, turns: 1, costUsd: 9 },
      { cwd: "/repo", sessions: 2, turns: 3, costUsd: 4.3, failed: 2 },
    ]);
    expect((await numbers({}, "bob")).totals.costUsd).toBe(100);
    expect(await numbers({}, "nobody")).toMatchObject({ days: [], models: [], directories: [], totals: { turns: 0 } });
  });

  it("usage figures count the time of open requests as waiting, without reducing the work of other turns", async () => {
    const request = { requestId: "r", kind: "permission", eventId: 1, toolName: "Bash", seenWhole: false } as const;
    const state = { ...initialState(NOW), requests: [{ ...request, ...withCaller(NOW - 90_000, NOW + 1_000) }] };
    await node.rows.create(session({ principal: "ann", at: NOW, spec: { cwd: "/repo" }, state }));
    const { days, totals } = await numbers();
    expect([totals.waitedMs, days[0]?.waitedMs]).toEqual([90_000, 90_000]);
    // Open requests do not reduce the `workedMs` of other turns.
    await keep(turn("2026-03-10T10:00:00Z", 1, { durationMs: 60_000 }));
    expect((await numbers()).totals).toMatchObject({ durationMs: 60_000, workedMs: 60_000, waitedMs: 90_000 });
  });

  it.each<[string, Log, object]>([
    [
      "that were open before, in and after the turn",
      [
        ["2026-03-07T08:00:00Z", asked],
        ["2026-03-07T08:10:00Z", started],
        ["2026-03-07T08:11:00Z", answered],
        ["2026-03-07T08:12:00Z", asked],
        ["2026-03-07T08:15:00Z", ended({ durationMs: 300_000 })],
        ["2026-03-07T09:15:00Z", answered],
      ],
      { durationMs: 300_000, workedMs: 60_000, waitedMs: 660_000 + 63 * 60_000 },
    ],
    [
      "that were open from one day to the next",
      [
        ["2026-03-06T20:00:00Z", started],
        ["2026-03-06T20:01:00Z", asked],
        ["2026-03-07T08:01:00Z", answered],
        ["2026-03-07T08:02:00Z", ended({ durationMs: 12 * 3_600_000 + 120_000 })],
      ],
      { workedMs: 120_000, waitedMs: 12 * 3_600_000 },
    ],
  ])("the work of a turn excludes the time of requests %s", async (_, log, expected) => {
    await keep(log);
    expect((await numbers()).totals).toMatchObject(expected);
  });

  it("usage figures use the days of the time zone, also when daylight saving time begins", async () => {
    await keep([
      ...turn("2026-03-07T22:59:59Z", 1),
      ...turn("2026-03-07T23:00:00Z", 2),
      // New York skips an hour on March 8, so that the day has 23 hours.
      ...turn("2026-03-08T04:59:59Z", 4),
      ...turn("2026-03-08T05:00:00Z", 8),
      ...turn("2026-03-09T03:59:59Z", 16),
      ...turn("2026-03-09T04:00:00Z", 32),
      // Kathmandu is at UTC+5:45.
      ...turn("2026-03-09T18:14:59Z", 64),
      ...turn("2026-03-09T18:15:00Z", 128),
    ]);
    const costs = async (zone?: string) => {
      const { days } = await numbers({ zone });
      return Object.fromEntries(days.map(({ costUsd, day }) => [day.slice(5), costUsd]));
    };
    expect(await costs()).toEqual({ "03-07": 3, "03-08": 12, "03-09": 240 });
    expect(await costs("Europe/Berlin")).toEqual({ "03-07": 1, "03-08": 14, "03-09": 240 });
    expect(await costs("America/New_York")).toEqual({ "03-07": 7, "03-08": 24, "03-09": 224 });
    expect(await costs("Asia/Kathmandu")).toEqual({ "03-08": 15, "03-09": 112, "03-10": 128 });
  });

  it("usage figures omit events before `since`, which is a quarter of an hour and at most 366 days ago", async () => {
    await keep([...turn("2026-03-01T00:00:00Z", 1), ...turn("2026-03-08T00:10:00Z", 2)]);
    await keep([...turn("2026-03-01T00:00:00Z", 4), ["2026-03-08T01:00:00Z", started]]);
    await keep(turn("2024-12-01T00:00:00Z", 8));
    const late = await numbers({ since: Date.parse("2026-03-08T00:14:00Z") });
    expect([late.since, late.totals.costUsd]).toEqual([Date.parse("2026-03-08T00:00:00Z"), 2]);
    expect(late.directories).toMatchObject([{ sessions: 1 }]);
    const all = await numbers({ since: 0 });
    expect([all.since, all.totals.costUsd]).toEqual([Date.parse("2025-03-09T12:00:00Z"), 7]);
  });

  it("an unknown time zone and an invalid `since` are refused", async () => {
    const refused = { name: "AppError", code: "INVALID_ARGUMENT" };
    await expect(numbers({ zone: "Mars/Olympus" })).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('zone: is not a time zone: "Mars/Olympus"') as unknown,
    });
    await expect(numbers({ since: Number.NaN })).rejects.toMatchObject(refused);
  });

  it("a log is read again only after its session has changed, and 120 sessions are summed up", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 120; n++) ids.push(await keep(turn("2026-03-09T00:00:00Z", 1)));
    const read: string[] = [];
    const counting: Pick<SessionBackend, "log" | "rows"> = {
      ...node,
      log: {
        ...node.log,
        read: async (...args) => {
          read.push(args[0]);
          return node.log.read(...args);
        },
      },
    };
    const request = createUsageReport(counting, () => NOW);
    expect((await request("ann", {})).totals).toMatchObject({ turns: 120, costUsd: 120 });
    expect(new Set(read)).toEqual(new Set(ids));
    read.length = 0;
    // Computes another zone or another `since` from cached sums.
    await request("ann", { zone: "Asia/Tokyo", since: NOW - 86_400_000 * 90 });
    expect(read).toEqual([]);

    const lease = await claimLease(node, ids[7]!);
    for (const [, event] of turn("", 0.5)) await write(node, lease, [event], NOW - 1);
    expect((await request("ann", {})).totals).toMatchObject({ turns: 121, costUsd: 120.5 });
    expect(new Set(read)).toEqual(new Set([ids[7]]));
  });

  it("the cache of sums evicts the least recently requested sessions beyond its maximum", async () => {
    const [first, second] = [await keep(turn("2026-03-09T00:00:00Z", 1)), await keep(turn("2026-03-09T00:00:00Z", 2))];
    let reads = 0;
    const log: Pick<SessionLog, "read"> = {
      read: async (...args) => {
        reads += 1;
        return node.log.read(...args);
      },
    };
    const remembered = new QuarterCache(log, 3);
    const readsOf = async (id: string): Promise<number> => {
      reads = 0;
      await remembered.get((await node.rows.get(id))!, createYielder());
      return reads;
    };
    expect(await readsOf(first)).toBeGreaterThan(0);
    expect(await readsOf(first)).toBe(0);
    expect(await readsOf(second)).toBeGreaterThan(0);
    expect(await readsOf(second)).toBe(0);
    expect(await readsOf(first)).toBeGreaterThan(0);
  });
});

it("the computation of usage figures leaves the event loop free", async () => {
  const node = memoryStore({ tick: () => NOW }).connect("a");
  await node.leases.heartbeat(TTL);
  for (let n = 0; n < 20; n++) {
    const { record } = await node.rows.create(session({ principal: "ann", at: NOW }));
    await write(node, await claimLease(node, record.id), [started, ended()], NOW);
  }
  const slow: Pick<SessionBackend, "log" | "rows"> = {
    ...node,
    log: {
      ...node.log,
      read: async (...args) => {
        // Blocks the thread like a long read of SQLite.
        for (const until = performance.now() + 6; performance.now() < until;);
        return node.log.read(...args);
      },
    },
  };
  let turns = 0;
  let isOver = false;
  const others = (): void => {
    turns += 1;
    if (!isOver) setImmediate(others);
  };
  setImmediate(others);
  await createUsageReport(slow, () => NOW)("ann", {});
  isOver = true;
  expect(turns).toBeGreaterThan(15);
});
