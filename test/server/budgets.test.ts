import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { BudgetDay } from "../../src/domain/budget.ts";
import { budgetOfKey, LEDGER_PREFIXES } from "../../src/domain/ledger.ts";
import { roundUsd } from "../../src/domain/usage.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { storedLedger, storedNotices } from "../kit/store/stored.ts";
import { createWorld, useWorld, type World } from "../kit/world.ts";

/** Tests the budget of a principal per day (`budgetUsdPerDay`). Amounts are USD. */

const homeOf = (world: World) => join(world.configFolder, "..");

/** Reads the only budget of the store. */
async function budget(world: World) {
  const [entry, ...others] = await storedLedger(homeOf(world), LEDGER_PREFIXES.budget);
  expect(others).toEqual([]);
  const { reserved, spentUsd, unknownUsd, ...rest } = BudgetDay.parse(entry?.value);
  const amounts = Object.values(reserved).toSorted((a, b) => a - b);
  return { of: budgetOfKey(entry?.key ?? ""), amounts, spentUsd, unknownUsd, ...rest };
}

const sum = (amounts: readonly number[]) => roundUsd(amounts.reduce((all, usd) => all + usd, 0));

/** Returns the usage of an answer that costs `usd` with the default model, at 4 USD for a million tokens. */
const costing = (usd: number) => ({ input_tokens: usd * 250_000, output_tokens: 0 });

const bash = (command: string) => [{ name: "Bash", input: { command, description: "Look" } }];

/** Sum over all sessions. */
async function totalOf(server: Server): Promise<number> {
  const { sessions } = await server.call("claude_code_session", { action: "list", limit: 50 });
  return sum(sessions.map(({ totalCostUsd }) => Number(totalCostUsd)));
}

async function costOf(server: Server, sessionId: string): Promise<number> {
  const { result } = await server.end(sessionId);
  return result?.sessionTotalCostUsd ?? Number.NaN;
}

describe("a budget per day", () => {
  const world = useWorld({ agent: "stand-in", daemon: "never" });
  const settings = () => world.settings({ budgetUsdPerDay: 8, maxLive: 16 });

  /** Starts a session, or returns the refusal of its prompt. */
  async function start(server: Server, prompt: string, advanced = {}): Promise<{ id?: string; refusal?: string }> {
    const options = { cwd: world.folder(), allowedTools: ["Bash"], advanced };
    return server.call("claude_code", { prompt, ...options }).then(
      ({ sessionId }) => ({ id: sessionId }),
      (error: unknown) => ({ refusal: String(error) }),
    );
  }

  it("`budgetUsdPerDay` holds under 16 sessions and a killed server, and the ledger has the sum of the results", async () => {
    const first = await world.server({ env: settings() });
    const slow = scriptTag([
      { tools: bash("true"), usage: costing(0.25) },
      { text: "late", gateBefore: "never" },
    ]);
    const small = await start(first, slow, { maxBudgetUsd: 0.5 });
    const others = await Promise.all(Array.from({ length: 15 }, async () => start(first, slow)));
    const ids = [small, ...others].flatMap(({ id }) => id ?? []);
    const refusals = others.flatMap(({ refusal }) => refusal ?? []);
    // 0.5, then eighths, and the rest.
    expect(await budget(world)).toMatchObject({
      of: { scope: "principal", name: "local" },
      amounts: [0.5, 0.5, 1, 1, 1, 1, 1, 1, 1],
      spentUsd: 0,
    });
    expect(ids).toHaveLength(9);
    expect(refusals).toHaveLength(7);
    for (const refusal of refusals) expect(refusal).toMatch(/SESSION_BUSY.*budgetUsdPerDay/s);
    // Every turn has had its first answer.
    await expect.poll(async () => totalOf(first)).toBe(9 * 0.25);

    process.kill(first.pid, "SIGKILL");
    await first.gone;
    const second = await world.server({ env: settings() });
    const lost = await Promise.all(ids.map(async (id) => costOf(second, id)));
    expect(lost).toEqual(ids.map(() => 0.25));
    expect(await budget(world)).toMatchObject({ amounts: [], spentUsd: 9 * 0.25 });

    const dear = scriptTag([
      { tools: bash("true"), usage: costing(0.75) },
      { tools: bash("sleep 30"), usage: costing(0.75) },
      { text: "never reached" },
    ]);
    const more = await Promise.all(Array.from({ length: 16 }, async () => start(second, dear)));
    const again = more.flatMap(({ id }) => id ?? []);
    const spent = await Promise.all(again.map(async (id) => costOf(second, id)));
    const full = await budget(world);
    expect(full).toMatchObject({ amounts: [], spentUsd: sum([...lost, ...spent]), isNoticed: true, unknownUsd: 0 });
    expect(full.spentUsd).toBeGreaterThan(8);
    expect(full.spentUsd).toBeLessThanOrEqual(8 + again.length * 0.75);
    expect(await storedNotices(homeOf(world), "nearly spent")).toHaveLength(1);
    const ok = scriptTag([{ text: "ok" }]);
    expect((await start(second, ok)).refusal).toMatch(/SESSION_BUSY.*budgetUsdPerDay/s);
    const reply = { sessionId: again[0], prompt: ok };
    expect(await second.refusal("claude_code_reply", reply)).toMatchObject({ code: "SESSION_BUSY" });
  });
});

it("with `onLimit` of `claude_code`, a prompt waits for the budget of the next day, or until the operator raises the budget", async () => {
  const world = await createWorld({ agent: "stand-in" });
  const waits = { limitWaitMaxMs: 100_000_000 };
  const first = await world.server({ env: world.settings({ ...waits, budgetUsdPerDay: 1 }) });
  const cwd = world.folder();
  const spend = scriptTag([{ text: "spent", usage: costing(1) }]);
  const { sessionId } = await first.call("claude_code", {
    prompt: spend,
    cwd,
    waitMs: 20_000,
    advanced: { onLimit: "wait" },
  });
  const later = await first.call("claude_code_reply", { sessionId, prompt: scriptTag([{ text: "later" }]) });
  expect(later).toMatchObject({ status: "running", waiting: { kind: "budget" } });
  process.kill(first.pid, "SIGKILL");
  await first.gone;
  const second = await world.server({ env: world.settings({ ...waits, budgetUsdPerDay: 5 }) });
  expect((await second.end(sessionId)).result).toMatchObject({ result: "later", isError: false });
  await world.close();
});

it("cost of a model without a known price is counted as such", async () => {
  const world = await createWorld();
  const server = await world.server({ env: world.settings({ budgetUsdPerDay: 8 }) });
  const prompt = scriptTag([{ text: "ok", usage: { input_tokens: 500_000, output_tokens: 0 } }]);
  const options = { cwd: world.folder(), model: "claude-unheard-of-9", waitMs: 40_000 };
  const { sessionId } = await server.call("claude_code", { prompt, ...options });
  const { spentUsd, unknownUsd } = await budget(world);
  expect(spentUsd).toBe(await costOf(server, sessionId));
  expect(unknownUsd).toBe(spentUsd);
  expect(spentUsd).toBeGreaterThan(0.9);
  await world.close();
});
