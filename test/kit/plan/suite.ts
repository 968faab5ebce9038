import { randomUUID } from "node:crypto";

import { afterEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import { type AgentKind, useWorld } from "../world.ts";
import { of, PlanSession, resultOf } from "./plan-session.ts";

/** Behavior at the limits of a plan that this server depends on, with the real Claude Code and with its stand-in. */

const HOUR_S = 3600;
/** Ends of the windows, seconds since the epoch. */
const RESET = Math.floor(Date.now() / 1000) + HOUR_S;
const WEEK = RESET + 100 * HOUR_S;
export const LIMIT = { window: "five_hour", resetsAt: RESET * 1000 };

const bash = { tools: [{ name: "Bash", input: { command: "echo done", description: "step" } }] };
export const plan = (used: number) => ({
  claim: "five_hour",
  fiveHour: { used, resetsAt: RESET },
  sevenDay: { used: 0.25, resetsAt: WEEK },
});
export const refused = { error: { status: 429 as const, plan: { claim: "five_hour", resetsAt: RESET } } };

/** Number of tool calls before the refusal, and end of the process after the refusal. */
const WAYS = [0, 3].flatMap((steps) => (["live", "stop", "kill"] as const).map((how) => [steps, how] as const));

export function planSuite(agent: AgentKind): void {
  const world = useWorld({ plan: true });

  describe(`a subscription with ${agent === "real" ? "Claude Code" : "the stand-in"}`, () => {
    const sessions: PlanSession[] = [];
    const begun = (options = {}) => {
      const session = new PlanSession(world, agent, options);
      sessions.push(session);
      session.begin();
      return session;
    };
    afterEach(async () => Promise.all(sessions.splice(0).map(async (session) => session.end("kill"))));

    it("headers become reports, only when a whole percent changes, and the answer of `usage` stays as it is", async () => {
      const session = begun();
      const first = await session.prompt("One.", [
        { ...bash, plan: plan(0.42) },
        { text: "ok", plan: plan(0.424) },
      ]);
      expect(of("plan", first)).toEqual([
        {
          type: "plan",
          account: expect.objectContaining({ hasWindows: true, paidBy: "CLAUDE_CODE_OAUTH_TOKEN" }) as unknown,
          report: {
            windows: [
              { window: "five_hour", usedPercent: 42, resetsAt: RESET * 1000, source: "headers" },
              { window: "seven_day", usedPercent: 25, resetsAt: WEEK * 1000, source: "headers" },
            ],
            isUsingOverage: false,
          },
        },
      ]);
      const before = session.signals.length;
      expect(await session.control({ do: "usage" })).toMatchObject({ costUsd: expect.any(Number) as unknown });
      // A token is for inference only, so that the method knows no windows.
      expect(of("plan", session.signals.slice(before))).toEqual([]);
    });

    it.each(WAYS)(
      "a request refused after %s tool calls is sent again unchanged, once, by a process: %s",
      async (steps, how) => {
        const session = begun();
        const script = [...Array.from({ length: steps }, () => bash), { ...refused, text: "went on" }];
        const refusal = await session.prompt("THE PROMPT", script);
        expect(resultOf(refusal)).toMatchObject({ limit: LIMIT, isError: true, category: "limit" });
        expect(of("plan", refusal).at(-1)?.report.windows).toEqual([
          { ...LIMIT, isRejected: true, source: "rejection" },
        ]);
        expect(session.requests).toHaveLength(steps + 1);
        const before = session.transcript();
        expect(before.at(-1)).toBe("refusal");
        if (how !== "live") {
          await session.end(how);
          session.signals.length = 0;
          session.begin({ sendsAgain: true });
        }
        const id = randomUUID();
        expect(resultOf(await session.sendAgain(id))).toMatchObject({
          text: "went on",
          isError: false,
          promptIds: [id],
        });
        expect(session.requests).toHaveLength(steps + 2);
        const [refusedRequest, again] = session.requests.slice(steps);
        expect(again?.digest).toBe(refusedRequest?.digest);
        expect(session.transcript()).toEqual([...before, "assistant"]);
        expect(resultOf(await session.prompt("NEXT", [{ text: "next" }])).text).toBe("next");
        expect(session.requests.at(-1)?.told.split("THE PROMPT")).toHaveLength(2);
      },
    );

    it("a second refusal names the limit again, and the request can be sent once more", async () => {
      const session = begun();
      await session.prompt("THE PROMPT", [{ ...refused, times: 2, text: "went on" }]);
      expect(resultOf(await session.sendAgain()).limit).toEqual(LIMIT);
      expect(resultOf(await session.sendAgain())).toMatchObject({ text: "went on", isError: false });
      expect(new Set(session.requests.map(({ digest }) => digest)).size).toBe(1);
      expect(session.transcript()).toEqual(["user", "refusal", "refusal", "assistant"]);
    });

    it("a process that finds the refused request answered sends nothing, and the turn is lost", async () => {
      const session = begun();
      await session.prompt("THE PROMPT", [{ ...refused, text: "went on" }]);
      await session.sendAgain();
      await session.end("stop");
      session.signals.length = 0;
      session.begin({ sendsAgain: true });
      expect(await session.exited()).toMatchObject({
        subtype: "lost",
        error: expect.stringContaining("nothing was sent"),
      });
      expect(of("started", session.signals)).toEqual([]);
      expect(session.requests).toHaveLength(2);
    });

    it("a turn goes on beyond the plan although the status is `rejected`, and reports it", async () => {
      const session = begun();
      const overage = { status: "allowed" as const, inUse: true, resetsAt: WEEK };
      const paid = { ...plan(1), status: "rejected" as const, overage };
      const signals = await session.prompt("One.", [{ ...bash, plan: paid }, { text: "paid" }]);
      expect(resultOf(signals)).toMatchObject({ text: "paid", isError: false });
      const [report] = of("plan", signals);
      expect(report?.report.isUsingOverage).toBe(true);
      expect(report?.report.windows.some(({ isRejected }) => isRejected)).toBe(false);
    });

    it("a fault 429 that passes is no limit", async () => {
      const session = begun();
      const signals = await session.prompt("One.", [{ error: { status: 429 }, times: 9 }]);
      expect(resultOf(signals)).toMatchObject({ isError: true, apiErrorStatus: 429, category: "overloaded" });
      expect(resultOf(signals)).not.toHaveProperty("limit");
      expect(of("plan", signals)).toEqual([]);
    });

    it("with a key, an error 429 is never a limit of a plan", async () => {
      const session = begun({ env: { ANTHROPIC_API_KEY: "a key" } });
      const signals = await session.prompt("One.", [{ ...refused, times: 9 }]);
      expect(resultOf(signals)).toMatchObject({ isError: true, apiErrorStatus: 429 });
      expect(resultOf(signals)).not.toHaveProperty("limit");
      await session.control({ do: "usage" });
      expect(of("plan", session.signals)).toEqual([]);
    });

    it("a subagent in the background that was refused is told in `warnings`", async () => {
      const session = begun();
      const gate = `agent of ${session.id}`;
      const helper = [{ ...refused, gateBefore: gate }];
      const call = { description: "help", subagent_type: "general-purpose", prompt: `Help. ${scriptTag(helper)}` };
      const script = [
        { tools: [{ name: "Agent", input: { ...call, run_in_background: true } }] },
        { text: "launched", plan: plan(0.5) },
        { ...refused, times: 9 },
      ];
      const ended = session.prompt("THE PROMPT", script);
      await session.seen((signal) => signal.type === "result");
      world.model.release(gate);
      const result = resultOf(await ended);
      expect(result).toMatchObject({ limit: LIMIT, warnings: [expect.stringContaining("A subagent was refused")] });
    });
  });
}
