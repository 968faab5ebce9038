import { expect, it } from "vitest";
import { AppError } from "../../src/domain/error.ts";
import type { SessionUse } from "../../src/engine/api.ts";
import { callOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { run, runWithSensitiveDetails } from "../kit/tools/run.ts";

const ACCOUNT = { id: "account:1", paidBy: "the Claude login", configFolder: "/home/me/.claude", hasWindows: true };
const [PAST, FUTURE] = [NOW - 60_000, NOW + 3_600_000];

function engineWith(use: Partial<SessionUse>): FakeEngine {
  const engine = new FakeEngine();
  engine.add("s1", { cwd: "/home/me", profile: "work" }).state.totals = { turns: 3, costUsd: 0.5 };
  engine.use = async () => Promise.resolve({ account: undefined, reserve: undefined, budgets: [], ...use });
  return engine;
}

async function usageOf(engine: FakeEngine): Promise<Record<string, unknown>> {
  const { structured } = await run(engine, "_session", { action: "usage", sessionId: "s1" });
  return (structured as { usage: Record<string, unknown> }).usage;
}

it("usage shows the windows of the account: used, refused, and free after a reset", async () => {
  const at = NOW - 5_000;
  const windows = {
    five_hour: { usedPercent: 42.26, resetsAt: FUTURE, source: "headers" as const, at },
    seven_day: { usedPercent: 90, resetsAt: PAST, source: "usage" as const, at },
    seven_day_opus: { isRejected: true, resetsAt: FUTURE, source: "rejection" as const, at },
  };
  const known = await usageOf(engineWith({ account: { ...ACCOUNT, windows } }));
  const resetsAt = new Date(FUTURE).toISOString();
  expect(known["plan"]).toEqual({
    paidBy: ACCOUNT.paidBy,
    windows: [
      { window: "five_hour", resetsAt, usedPercent: 42.3, ageS: 5, source: "headers" },
      {
        window: "seven_day",
        resetsAt: new Date(PAST).toISOString(),
        usedPercent: 0,
        note: expect.stringContaining("free") as string,
        ageS: 5,
        source: "usage",
      },
      { window: "seven_day_opus", resetsAt, usedPercent: 100, refused: true, ageS: 5, source: "rejection" },
    ],
  });
  expect(known).toMatchObject({ totalTurns: 3, totalCostUsd: 0.5, profile: "work" });
});

it("usage names the configuration folder only for callers who may see folders", async () => {
  const engine = engineWith({ account: { ...ACCOUNT, windows: {} } });
  expect(JSON.stringify(await usageOf(engine))).not.toContain("/home/me");
  const args = { action: "usage", sessionId: "s1" };
  const plan = { usage: { plan: { configFolder: "/home/me/.claude" } } };
  expect((await runWithSensitiveDetails(engine, args)).structured).toMatchObject(plan);
  const local = { ...callOf(), client: { ...callOf().client, isLocal: true } };
  expect((await run(engine, "_session", args, local)).structured).toMatchObject(plan);
});

it.each([
  [{ account: { ...ACCOUNT, hasWindows: false, windows: {} } }, /no plan windows: each request is billed/],
  [{ account: { ...ACCOUNT, windows: {} } }, /has not reported any window yet/],
  [{}, /The account is unknown/],
])("usage says why it has no windows: %#", async (use, note) => {
  expect(await usageOf(engineWith(use))).toMatchObject({ plan: { note: expect.stringMatching(note) as string } });
});

it("usage shows the reserve with its lines, and the budgets as estimates", async () => {
  const budget = { scope: "principal", name: "ann", usdPerDay: 10, spentUsd: 2, reservedUsd: 1.25, unknownUsd: 0.5 };
  const reserve = { fiveHour: 15, sevenDay: 20 };
  const used = await usageOf(engineWith({ reserve, budgets: [budget as SessionUse["budgets"][number]] }));
  expect(used).toMatchObject({
    reserve: { ...reserve, lines: { five_hour: 85, seven_day: 80 } },
    budgets: [{ ...budget, leftUsd: 6.75, estimated: true }],
  });
});

it("usage asks no process of a session that waits or has ended, and says so", async () => {
  const engine = engineWith({});
  engine.control = async () => Promise.reject(new AppError("INTERNAL", "must not be asked"));
  const { state } = engine.sessions.get("s1")!;
  state.waiting = { kind: "usage_limit", since: NOW };
  expect(await usageOf(engine)).toMatchObject({ contextUnknown: "The session waits at the limit of the plan." });
  delete state.waiting;
  state.closed = { reason: "cancelled", by: "x", at: NOW };
  expect(await usageOf(engine)).toMatchObject({ contextUnknown: "The session was cancelled.", totalTurns: 3 });
});

it("usage answers without the context if no process can be started, but not for an unknown session", async () => {
  const engine = engineWith({});
  engine.control = async () => Promise.reject(new AppError("PERMISSION_DENIED", "This needs the scope run."));
  expect(await usageOf(engine)).toMatchObject({ contextUnknown: "This needs the scope run.", totalTurns: 3 });
  const reply = await run(engine, "_session", { action: "usage", sessionId: "none" });
  expect(reply.structured).toMatchObject({ code: "SESSION_NOT_FOUND" });
});
