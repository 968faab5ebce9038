import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
import { killDaemons } from "../kit/faults/shims.ts";
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
