import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import {
  begin,
  call,
  connected,
  ended,
  expectEnd,
  expectOnce,
  inOwnWorld,
  type LimitedTurn,
  refusal,
  untilWaiting,
  WENT_ON,
} from "../kit/faults/at-limit.ts";
import { killDaemons, persistently } from "../kit/faults/shims.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import { amount } from "../kit/runner/amount.ts";
import { constants } from "../kit/servers/constants.ts";
import { preloading } from "../kit/servers/preload.ts";

/** Kills the daemon at moments between the refusal and the answer after going on, with Claude Code alive and without. */

const TIMEOUT = { timeout: 120_000 };
const KILLER = join(import.meta.dirname, "../kit/faults/kill-daemon.mjs");

type End = "done" | "lost";

interface Moment {
  readonly name: string;
  /** Point of `kill-daemon.mjs`; without one, `during` kills the daemon. */
  readonly point?: string;
  /** Number of times that the daemon survives the point. */
  readonly skip?: number;
  readonly during?: (turn: LimitedTurn) => Promise<void>;
  /** Closes the process while the turn waits, so that going on starts another. */
  readonly isClosed?: true;
  readonly resetsInS?: number;
  /** A request that may have been sent again is not repeated, whatever `onLost` says. */
  readonly onLost?: "resume";
  readonly after?: Script;
  readonly ends: readonly [shim: End, noShim: End];
}

const answered = (turn: LimitedTurn, entry: number) =>
  turn.world.model.waitForRequest(
    ({ served, sessionId }) =>
      sessionId === turn.sessionId && "entry" in served && served.entry === entry && served.fault === undefined,
  );

const MOMENTS: readonly Moment[] = [
  { name: "before the refusal is stored", point: "before refusal", ends: ["done", "lost"] },
  { name: "after the refusal is stored", point: "after refusal", ends: ["done", "done"] },
  { name: "before the wait is stored", point: "before wait", ends: ["done", "done"] },
  { name: "after the wait is stored", point: "after wait", ends: ["done", "done"] },
  {
    name: "before the reset",
    resetsInS: 5,
    during: async (turn) => {
      await untilWaiting(turn);
      await killDaemons(turn.world);
    },
    ends: ["done", "done"],
  },
  { name: "before the decision is stored", point: "before decision", ends: ["done", "done"] },
  { name: "after the decision is stored", point: "after decision", ends: ["done", "lost"] },
  { name: "before the message is sent", point: "before again", ends: ["done", "lost"] },
  { name: "after the message is sent", point: "after again", onLost: "resume", ends: ["done", "lost"] },
  {
    name: "while the answer hangs",
    onLost: "resume",
    after: [{ ...call(2), gateBefore: "hangs" }, { text: WENT_ON }],
    during: async (turn) => {
      await answered(turn, 2);
      await killDaemons(turn.world);
      turn.world.model.release("hangs");
    },
    ends: ["done", "lost"],
  },
  {
    name: "in the answer",
    after: [{ text: "I see.", ...call(2), gate: "speaks" }, { text: WENT_ON }],
    during: async (turn) => {
      await answered(turn, 2);
      await killDaemons(turn.world);
      turn.world.model.release("speaks");
    },
    ends: ["done", "lost"],
  },
  { name: "before the end of the turn is stored", point: "before end", ends: ["done", "done"] },
  {
    name: "after the decision to start another process",
    isClosed: true,
    resetsInS: 5,
    point: "after decision",
    ends: ["done", "done"],
  },
  {
    name: "after the start of another process is recorded",
    isClosed: true,
    resetsInS: 5,
    point: "after record",
    skip: 1,
    ends: ["done", "lost"],
  },
];

const FATES = [
  [0, "lives on"],
  [1, "dies too"],
] as const;

/** Usually every other moment, with and without a living Claude Code in turn. */
const CASES = MOMENTS.flatMap((moment, index) =>
  FATES.flatMap(([at, fate]) => {
    const title = `${moment.name}, Claude Code ${fate}: the request is sent again at most once`;
    return amount(index % 2 === 1 && at === Math.floor(index / 2) % 2 ? 1 : 0, 1) === 1 ? [{ title, moment, at }] : [];
  }),
);

describe.concurrent("a daemon killed at a limit", () => {
  it.for(CASES)("$title", TIMEOUT, async ({ at, moment }) =>
    inOwnWorld(async (world) => {
      const { during, isClosed, onLost, point = "", resetsInS = 2, skip = 0, after } = moment;
      const mark = join(world.folder(), "mark");
      const killing = { KILL_MARK: mark, KILL_POINTS: point, KILL_SKIP: String(skip) };
      const client = await connected(world, {
        args: isClosed ? ["--idle-process-ms", "1000"] : [],
        env: at === 0 ? {} : constants({ shim: false }),
        node: [preloading(KILLER, killing)],
      });
      const refusals = [refusal(resetsInS)];
      const turn = await begin(world, { client, refusals, onLost, ...(after && { after }) });
      await during?.(turn);
      expectEnd(await ended(turn), moment.ends[at]);
      expect(existsSync(mark) ? readFileSync(mark, "utf8") : "").toBe(point === "" ? "" : "x");
      await expectOnce(turn, { isLost: moment.ends[at] === "lost" });
      if (amount(0, 1) === 0) return;
      const prompt = `Go on. ${scriptTag([{ text: "Next." }])}`;
      const next = await client.call("claude_code_reply", { sessionId: turn.sessionId, prompt, waitMs: 40_000 });
      expect(next).toMatchObject({ status: "idle", result: { result: "Next." } });
    }),
  );
});

describe.concurrent("a kill at a limit", () => {
  it("a Claude Code that dies in the answer after going on loses the turn, and a reply goes on", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world);
      const after = [{ gateBefore: "never", text: WENT_ON }];
      const turn = await begin(world, { client, refusals: [refusal(1)], onLost: "resume", after });
      await world.model.waitForRequest(({ served }) => "entry" in served && served.entry === 2);
      for (const { pid } of world.processes().filter(({ command }) => command.includes(turn.sessionId)))
        process.kill(pid, "SIGKILL");
      expectEnd(await ended(turn), "lost");
      await expectOnce(turn, { isLost: true });
      const reply = { sessionId: turn.sessionId, prompt: scriptTag([{ text: "Next." }]), waitMs: 40_000 };
      expect(await client.call("claude_code_reply", reply)).toMatchObject({ result: { result: "Next." } });
    }),
  );

  it("a prompt held back by the reserve is given once, although its daemon is killed in the wait", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const client = await connected(world, { settings: { planReserve: { fiveHour: 20 } } });
      const plan = { claim: "five_hour", fiveHour: { used: 0.9, resetsInS: 7 } };
      const mine = scriptTag([{ text: "Mine.", plan }]);
      await client.call("claude_code", { prompt: mine, cwd: world.folder(), waitMs: 40_000 });
      const prompt = `Held back. ${scriptTag([{ ...call(1) }, { text: WENT_ON }])}`;
      const start = { prompt, cwd: world.folder(), allowedTools: ["Bash"], advanced: { onLimit: "wait" } };
      const { sessionId } = await client.call("claude_code", start);
      await untilWaiting({ client, sessionId }, { kind: "plan_reserve" });
      await killDaemons(world);
      expect(requestsOf(world, sessionId)).toEqual([]);
      expect(await ended({ client, sessionId })).toMatchObject({ status: "idle", result: { result: WENT_ON } });
      const requests = requestsOf(world, sessionId);
      expect(requests.map(({ told }) => told.split("Held back.").length)).toEqual([2, 2]);
    }),
  );

  it(
    "action `continue` of a daemon that is killed before it sends the request is lost, and never repeated",
    TIMEOUT,
    async () =>
      inOwnWorld(async (world) => {
        const killing = { KILL_MARK: join(world.folder(), "mark"), KILL_POINTS: "after decision" };
        const client = await connected(world, {
          env: constants({ shim: false }),
          node: [preloading(KILLER, killing)],
        });
        const turn = await begin(world, { client, onLimit: "report", refusals: [refusal(1)] });
        const { result } = await ended(turn);
        await sleep(Math.max(0, Date.parse(String(result?.["resetsAt"])) - Date.now()));
        const again = { action: "continue", sessionId: turn.sessionId };
        await expect(client.call("claude_code_session", again)).rejects.toThrow("has ended");
        const poll = { action: "poll", sessionId: turn.sessionId, until: "end", waitMs: 40_000 };
        expectEnd(await persistently(async () => client.call("claude_code_check", poll)), "lost");
        expect(await client.refusal("claude_code_session", again)).toMatchObject({ code: "INVALID_ARGUMENT" });
        expect(requestsOf(world, turn.sessionId)).toHaveLength(2);
      }),
  );
});
