import { describe, expect, it, vi } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import {
  begin,
  call,
  connected,
  ended,
  expectOnce,
  inOwnWorld,
  type LimitedTurn,
  refusal,
  untilWaiting,
  WENT_ON,
} from "../kit/faults/at-limit.ts";
import { homeOf } from "../kit/faults/shims.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import { storedEvents } from "../kit/store/stored.ts";
import type { World } from "../kit/world.ts";

/** Limits of the plan as several sessions, accounts and windows meet them, with the real Claude Code. */

const TIMEOUT = { timeout: 120_000 };
const HOUR_S = 3_600;
const WAITS = { onLimit: "wait" } as const;

const run = async (client: Server, world: World, script: Script) =>
  client.call("claude_code", {
    prompt: scriptTag(script),
    cwd: world.folder(),
    allowedTools: ["Bash"],
    waitMs: 40_000,
  });

/** Windows of the client's account, as `usage` of a session tells them. */
async function windowsOf({ client, sessionId }: Pick<LimitedTurn, "client" | "sessionId">): Promise<unknown> {
  const { usage } = await client.call("claude_code_session", { action: "usage", sessionId });
  return (usage as { plan: { windows: unknown } }).plan.windows;
}

const windowLike = (like: object) => expect.arrayContaining([expect.objectContaining(like)]) as unknown[];

/** Number of times that a turn told in its log that it sends the refused request again. */
async function decisions({ sessionId, world }: LimitedTurn): Promise<number> {
  const log = await storedEvents(homeOf(world), sessionId);
  return log.filter(({ event }) => event.includes("is sent once more")).length;
}

describe.concurrent("sessions at limits", () => {
  it("two sessions at one limit go on, each once", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world);
      const both = await Promise.all(
        [3, 0].map(async (calls) => begin(world, { client, calls, refusals: [refusal(4)] })),
      );
      await Promise.all(both.map(async (turn) => untilWaiting(turn)));
      for (const turn of both) {
        expect(await ended(turn)).toMatchObject({ status: "idle", result: { result: WENT_ON } });
        await expectOnce(turn);
        expect(await decisions(turn)).toBe(1);
      }
    }),
  );

  it("an account waits while another runs, and the windows of both are kept apart", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const [client, other] = await Promise.all([
        connected(world),
        connected(world, { env: { CLAUDE_CODE_OAUTH_TOKEN: "another account" } }),
      ]);
      const turn = await begin(world, { client, refusals: [refusal(HOUR_S)] });
      await untilWaiting(turn);
      expect(world.daemons()).toHaveLength(1);
      const plan = { claim: "five_hour", fiveHour: { used: 0.2, resetsInS: HOUR_S } };
      const done = await run(other, world, [{ text: "Free.", plan }]);
      expect(done).toMatchObject({ status: "idle", result: { result: "Free." } });
      expect(await windowsOf(turn)).toEqual(windowLike({ window: "five_hour", refused: true }));
      const ofOther = await windowsOf({ client: other, sessionId: done.sessionId });
      expect(ofOther).toEqual(windowLike({ window: "five_hour", usedPercent: 20 }));
      await untilWaiting(turn);
      await client.call("claude_code_session", { action: "interrupt", sessionId: turn.sessionId });
      expect(await ended(turn)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
      expect(world.model.requests.filter(({ sessionId }) => sessionId === turn.sessionId)).toHaveLength(2);
    }),
  );

  it(
    "a report at another server moves the end of a wait, and ends it early once the window is free",
    TIMEOUT,
    async () =>
      inOwnWorld(async (world) => {
        const [client, person] = await Promise.all([connected(world), world.server()]);
        const turn = await begin(world, { client, refusals: [refusal(HOUR_S)] });
        const { until = "" } = await untilWaiting(turn);
        const report = async (used: number, resetsInS: number) =>
          run(person, world, [{ text: "Mine.", plan: { claim: "five_hour", fiveHour: { used, resetsInS } } }]);
        await report(1, 2 * HOUR_S);
        await vi.waitFor(
          async () => {
            const { until: moved = "" } = await untilWaiting(turn);
            expect(Date.parse(moved) - Date.parse(until)).toBeGreaterThan((HOUR_S - 60) * 1000);
          },
          { timeout: 20_000, interval: 100 },
        );
        await report(0.1, 2 * HOUR_S);
        expect(await ended(turn)).toMatchObject({ status: "idle", result: { result: WENT_ON } });
        await expectOnce(turn);
      }),
  );
});

describe.concurrent("a turn that waits at a limit", () => {
  it("waits on at another limit right after the reset, and sends the same request a third time", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world);
      const turn = await begin(world, { client, refusals: [refusal(2), refusal(4, "seven_day")] });
      await untilWaiting(turn, { window: "five_hour" });
      await untilWaiting(turn, { window: "seven_day" });
      expect(await ended(turn)).toMatchObject({ status: "idle", result: { result: WENT_ON } });
      await expectOnce(turn, { again: 2 });
      expect(await decisions(turn)).toBe(2);
    }),
  );

  it("reports at once a reset beyond `limitWaitMaxMs`", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world, { settings: { limitWaitMaxMs: 1_800_000 } });
      const turn = await begin(world, { client, refusals: [refusal(HOUR_S)] });
      const limit = { errorSubtype: "usage_limit", window: "five_hour", retryable: true };
      expect(await ended(turn)).toMatchObject({ status: "error", result: limit });
      expect(world.model.requests).toHaveLength(2);
    }),
  );

  it(
    "asks ever more rarely if a reset has passed by the clock here, and reports the limit in the end",
    TIMEOUT,
    async () =>
      inOwnWorld(async (world) => {
        const client = await connected(world, { settings: { limitWaitMaxMs: 4_000 } });
        const past = Math.floor(Date.now() / 1000) - HOUR_S;
        const wrong = { error: { status: 429 as const, plan: { claim: "five_hour", resetsAt: past } }, times: 1_000 };
        const turn = await begin(world, { client, refusals: [wrong] });
        expect(await ended(turn)).toMatchObject({ status: "error", result: { errorSubtype: "usage_limit" } });
        const times = world.model.requests.slice(1).map(({ time }) => time);
        const pauses = times.slice(1).map((time, at) => time - times[at]!);
        expect(times.length).toBeGreaterThan(1);
        expect(times.length).toBeLessThanOrEqual(4);
        for (const [at, pause] of pauses.entries()) expect(pause).toBeGreaterThanOrEqual(800 * 2 ** at - 50);
      }),
  );
});

describe.concurrent("reports of the plan that are no refusal", () => {
  const paid = {
    status: "rejected" as const,
    claim: "five_hour",
    resetsInS: HOUR_S,
    overage: { status: "allowed" as const, inUse: true, resetsInS: HOUR_S },
  };

  it.each([
    ["without a reserve it goes on", undefined, true],
    ["with a reserve it is interrupted", { sevenDay: 20 }, false],
    ["with a reserve and `allowOverage` it goes on", { sevenDay: 20, allowOverage: true }, true],
  ] as const)("a turn is paid beyond the plan: %s", TIMEOUT, async (_, planReserve, goesOn) =>
    inOwnWorld(async (world) => {
      const client = await connected(world, planReserve ? { settings: { planReserve } } : {});
      const last = { text: WENT_ON, ...(goesOn ? {} : { gateBefore: "never" }) };
      const ran = await run(client, world, [{ ...call(1), plan: paid }, last]);
      const result = goesOn ? { result: WENT_ON, isError: false } : { errorSubtype: "overage", category: "limit" };
      expect(ran).toMatchObject({ status: "idle", result });
    }),
  );

  it("a fault 429 without a window is retried by Claude Code, and no limit is reported", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world);
      const turn = await begin(world, { client, refusals: [{ error: { status: 429 } }] });
      expect(await ended(turn)).toMatchObject({ status: "idle", result: { result: WENT_ON, isError: false } });
      await expectOnce(turn);
      expect(await decisions(turn)).toBe(0);
      const log = await storedEvents(homeOf(world), turn.sessionId);
      expect(log.filter(({ event }) => event.includes('"waiting"'))).toEqual([]);
    }),
  );

  it.each([true, false])("a refused subagent is told in the warnings (in the background: %s)", TIMEOUT, async (later) =>
    inOwnWorld(async (world) => {
      const client = await connected(world);
      const helper = scriptTag([{ ...refusal(HOUR_S), ...(later && { gateBefore: "later" }), text: "Never said." }]);
      const input = { description: "help", subagent_type: "general-purpose", prompt: `Help. ${helper}` };
      const agent = { name: "Agent", input: { ...input, ...(later && { run_in_background: true }) } };
      const prompt = scriptTag([{ tools: [agent] }, { text: "Launched." }, { text: "Told." }]);
      const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
      if (later) {
        await world.model.waitForRequest(
          ({ served, subagent }) => !subagent && "entry" in served && served.entry === 1,
        );
        world.model.release("later");
      }
      const { result, status } = await client.end(sessionId);
      expect({ status, ...result }).toMatchObject({
        status: "idle",
        warnings: [expect.stringContaining("A subagent was refused")],
      });
    }),
  );

  it(
    "a turn whose subagent runs on after the refusal waits once both have ended, and goes on by one request",
    TIMEOUT,
    async () =>
      inOwnWorld(async (world) => {
        const client = await connected(world);
        const helper = scriptTag([{ gateBefore: "help", text: "Helped." }]);
        const input = { description: "help", subagent_type: "general-purpose", prompt: `Help. ${helper}` };
        const agent = { name: "Agent", input: { ...input, run_in_background: true } };
        const twice = { ...refusal(5), times: 2, text: WENT_ON };
        const prompt = scriptTag([{ tools: [agent] }, twice]);
        const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder(), advanced: WAITS });
        await world.model.waitForRequest(
          (seen) => !seen.subagent && "fault" in seen.served && seen.served.fault === "error",
        );
        world.model.release("help");
        await untilWaiting({ client, sessionId });
        expect(await client.end(sessionId)).toMatchObject({ status: "idle", result: { result: WENT_ON } });
        const [, first, second, again, ...more] = requestsOf(world, sessionId);
        expect([first?.served, second?.served, again?.served]).toMatchObject([
          { fault: "error" },
          { fault: "error" },
          { fault: undefined },
        ]);
        expect([again?.digest, more]).toEqual([second?.digest, []]);
      }),
  );
});
