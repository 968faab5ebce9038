import { describe, expect, it } from "vitest";
import { inWords, tallySession } from "../../src/cli/sessions/stats.ts";
import { Tally } from "../../src/usage/tally.ts";
import type { SessionEvent, TurnEnded } from "../../src/domain/event.ts";
import type { SessionLog } from "../../src/engine/ports.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { claimLease, prompt, session, T0, TTL, write } from "../kit/store/vocabulary.ts";

const queued = (promptId: string, via?: string): SessionEvent => ({
  type: "prompt.queued",
  data: { promptId, text: "do it", ...(via !== undefined && { via }) },
});
const started = (...promptIds: string[]): SessionEvent => ({
  type: "turn.started",
  data: { turnId: "t", origin: promptIds.length > 0 ? "prompt" : "self", promptIds },
});
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
const result = (input: number, costs: Record<string, number>, calls = 1): SessionEvent => ({
  type: "message",
  data: {
    message: {
      type: "result",
      num_turns: calls,
      usage: { input_tokens: input, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: null },
      modelUsage: Object.fromEntries(Object.entries(costs).map(([model, costUSD]) => [model, { costUSD }])),
    },
  },
});
const assistantMessage: SessionEvent = {
  type: "message",
  data: { message: { type: "assistant", usage: { input_tokens: 9 } } },
};
const asked = (requestId: string, kind: "permission" | "question" = "permission"): SessionEvent => ({
  type: `${kind}.asked`,
  data: { requestId, kind, toolName: "Bash", input: {}, toolUseId: "u" },
});
const answered = (
  requestId: string,
  by: "caller" | "timeout",
  kind: "permission" | "question" = "permission",
): SessionEvent => ({
  type: `${kind}.answered`,
  data: { requestId, toolName: "Bash", behavior: by === "caller" ? "allow" : "deny", by },
});

/** Reports on one session for each of `logs`; `seconds` count from `T0`. */
async function reportOn(logs: readonly (readonly [seconds: number, event: SessionEvent])[][], since = 0) {
  const node = memoryStore({ tick: () => T0 }).connect("a");
  await node.leases.heartbeat(TTL);
  const tally = new Tally();
  for (const log of logs) {
    const { record } = await node.rows.create(session());
    const lease = await claimLease(node, record.id);
    for (const [seconds, event] of log) await write(node, lease, [event], T0 + seconds * 1000);
    await tallySession(node, (await node.rows.get(record.id))!, since, tally);
  }
  return tally.report();
}

describe("the usage report", () => {
  it("the report adds up turns by outcome, by error and by tool", async () => {
    const failed = { outcome: "failed", isError: true, category: "overloaded" } as const;
    const report = await reportOn([
      [
        [0, queued("1", "claude_code")],
        [0, started("1")],
        [1, ended({ durationMs: 1000, costUsd: 0.25 })],
        [2, queued("2", "claude_code_reply")],
        [2, started("2")],
        [3, ended({ ...failed, durationMs: 3000 })],
        [4, started()],
        [5, ended({ durationMs: 500 })],
      ],
      [
        [0, queued("1", "claude_code")],
        [0, started("1")],
        [9, ended({ outcome: "lost", isError: true, durationMs: 9000 })],
        [9, started("of-nobody")],
        [9, ended({ outcome: "interrupted", isError: true, durationMs: 2000 })],
      ],
    ]);
    expect(report.sessions).toEqual({ total: 2, byStatus: { idle: 2 } });
    expect(report.turns).toEqual({
      total: 5,
      failures: 2,
      errorRate: 0.4,
      durationMs: { median: 2000, p95: 9000, max: 9000 },
      costUsd: 0.25,
      byOutcome: { done: 2, failed: 1, lost: 1, interrupted: 1 },
      failuresByCategory: { overloaded: 1, unknown: 1 },
      waitedMs: 0,
      apiMs: 50,
    });
    const byTool = report.tools.map(({ errorRate, tool, total }) => [tool, total, errorRate]);
    expect(new Set(byTool)).toEqual(
      new Set([
        ["(itself)", 1, 0],
        ["(unknown)", 1, 0],
        ["claude_code", 2, 0.5],
        ["claude_code_reply", 1, 1],
      ]),
    );
  });

  it("the report counts the tokens of every result of a turn once, and splits the cost by model", async () => {
    const report = await reportOn([
      [
        [0, started("1")],
        [0, assistantMessage],
        [1, result(10, { opus: 1, haiku: 1 })],
        [2, assistantMessage],
        [3, result(20, { opus: 3, haiku: 1 })],
        [4, ended({ resultEventId: 5, numTurns: 2, costUsd: 4 })],
        [5, started("2")],
        [6, result(30, { opus: 4, haiku: 2 }, 3)],
        [7, ended({ resultEventId: 8, numTurns: 3, costUsd: 1 })],
        // Claude Code was killed and continues counting from its last saved state.
        [8, started("3")],
        [9, result(40, { opus: 2 })],
        [9, ended({ resultEventId: 11, costUsd: 0.5 })],
        [9, started("4")],
        [9, ended({ costUsd: 0.125 })],
      ],
    ]);
    expect(report.tokens).toEqual({ input: 100, output: 8, cache_read: 12, cache_creation: 0 });
    expect(report.models).toEqual([
      { model: "opus", costUsd: 4 },
      { model: "haiku", costUsd: 1.5 },
      { model: "(unknown)", costUsd: 0.125 },
    ]);
    expect(report.turns.costUsd).toBe(5.625);
  });

  it("the report shows how long requests waited, by decision and approver; overlapping waits count once", async () => {
    const report = await reportOn([
      [
        [0, asked("a")],
        [1, asked("b")],
        [4, answered("a", "caller")],
        [6, answered("b", "timeout")],
        [10, asked("c", "question")],
        [11, answered("c", "caller", "question")],
        [12, answered("never-asked", "caller")],
      ],
    ]);
    expect(report.turns.waitedMs).toBe(7000);
    expect(report.requests.answered).toEqual([
      { kind: "permission", decision: "allow", by: "caller", count: 2, waitMs: { median: 4000, p95: 4000, max: 4000 } },
      { kind: "permission", decision: "deny", by: "timeout", count: 1, waitMs: { median: 5000, p95: 5000, max: 5000 } },
      { kind: "question", decision: "allow", by: "caller", count: 1, waitMs: { median: 1000, p95: 1000, max: 1000 } },
    ]);
  });

  it("the report omits events before `since`, and includes sessions that began before", async () => {
    const retry = { type: "notice", data: { kind: "retry", message: "overloaded" } } satisfies SessionEvent;
    const exit = (expected: boolean): SessionEvent => ({
      type: "process.exited",
      data: { processId: "1", code: 1, signal: null, expected },
    });
    const log: [number, SessionEvent][] = [
      [0, queued("1", "claude_code_query")],
      [0, started("1")],
      [1, retry],
      [1, exit(false)],
      [2, result(5, { opus: 1 })],
      [3, ended({ resultEventId: 5, costUsd: 1 })],
      [4, started("1")],
      [5, asked("a")],
      [9, answered("a", "caller")],
      [9, retry],
      [9, { type: "notice", data: { kind: "warning", message: "retry" } }],
      [9, exit(true)],
      [9, exit(false)],
      [9, result(6, { opus: 3 })],
      [9, ended({ resultEventId: 14, costUsd: 2 })],
    ];
    const [all, late] = [await reportOn([log]), await reportOn([log], T0 + 9000)];
    expect([all.apiRetries, all.crashes, all.turns.total, all.tokens.input]).toEqual([2, 2, 2, 11]);
    expect([late.apiRetries, late.crashes, late.turns.total, late.tokens.input]).toEqual([1, 1, 1, 6]);
    expect(late.models).toEqual([{ model: "opus", costUsd: 2 }]);
    expect(late.tools).toMatchObject([{ tool: "claude_code_query", total: 1 }]);
    expect(late.requests.answered).toMatchObject([{ waitMs: { median: 4000 } }]);
  });

  it("the report reads only results among messages, however long the log is", async () => {
    const node = memoryStore({ tick: () => T0 }).connect("a");
    await node.leases.heartbeat(TTL);
    const { record } = await node.rows.create(session());
    const lease = await claimLease(node, record.id);
    const noise = Array.from({ length: 1000 }, () => assistantMessage);
    await write(node, lease, [started("1"), ...noise, result(7, {}), ended({ resultEventId: 1002 })]);
    const read: number[] = [];
    const log: SessionLog = {
      ...node.log,
      read: async (...args) => {
        const events = await node.log.read(...args);
        read.push(...events.filter(({ type }) => type === "message").map(({ id }) => id));
        return events;
      },
    };
    const tally = new Tally();
    await tallySession({ log }, (await node.rows.get(record.id))!, 0, tally);
    expect([tally.report().tokens.input, read]).toEqual([7, [1002]]);
  });

  it("`inWords` writes the report as a text without terminal control characters", async () => {
    const report = await reportOn([
      [
        [0, queued("1", "claude\u001b[2J\ncode")],
        [0, prompt("other")],
        [0, started("1")],
        [0, asked("a")],
        [61, answered("a", "caller")],
        [62, result(12_345, { opus: 2 })],
        [62, ended({ resultEventId: 6, durationMs: 62_000, costUsd: 2 })],
      ],
    ]);
    expect(inWords(report)).toBe(
      [
        "Sessions  1: 1 idle",
        "Turns     1: 1 done",
        "Errors    0.0%",
        "Time      median 1m, p95 1m, longest 1m; 1m in all with a request open",
        "Tokens    12,345 in, 2 out, 3 from the cache, 0 to the cache",
        "Cost      $2.00",
        "Requests  0 requests open",
        "Retries   0 retries of the API",
        "Crashes   0 processes ended unexpectedly",
        "",
        "TOOL            TURNS  ERRORS  MEDIAN  P95  LONGEST   COST",
        "claude[2J code      1    0.0%      1m   1m       1m  $2.00",
        "",
        "REQUEST     DECISION  BY      COUNT  MEDIAN  P95  LONGEST",
        "permission  allow     caller      1      1m   1m       1m",
        "",
        "MODEL   COST",
        "opus   $2.00",
        "",
      ].join("\n"),
    );
    expect(inWords(await reportOn([]))).toBe("No session matches.\n");
  });
});
