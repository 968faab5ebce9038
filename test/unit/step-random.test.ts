import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { Effect } from "../../src/engine/step.ts";
import { amount } from "../kit/runner/amount.ts";
import { type StateName, walkTo } from "../kit/step/cases.ts";
import { VERIFY } from "../kit/step/evidence-cases.ts";
import { applyHappening, happening, uniqueOf } from "../kit/step/happenings.ts";
import { Walk } from "../kit/step/walk.ts";

const DAY = 86_400_000;

/** Limits of unattended work. `UNATTENDED` is `undefined` for a server that ends with its clients. */
const BOUNDS = { afterMs: 600_000, maxMs: 1_200_000, maxUsd: 1 };
const UNATTENDED = [undefined, { ...BOUNDS, requests: "wait" as const }, { ...BOUNDS, requests: "deny" as const }];

/** Stages of a turn that is verified. */
const STAGES: readonly StateName[] = [
  "running, with receipts",
  "looking",
  "judging commands",
  "asking for commands",
  "commands run",
  "commands run, in a shim",
  "commands run, process gone",
  "repairing",
  "repaired, commands run",
  "commands run on demand, without a process",
  "idle, with receipts",
];

/** Beginnings of walks: servers without receipts, with receipts, and each stage of a verified turn. */
const BEGINNINGS: readonly { readonly from?: StateName; readonly policy: Partial<Policy> }[] = [
  { policy: {} },
  { policy: { receipts: true } },
  ...STAGES.map((from) => ({ from, policy: { receipts: true, ...VERIFY } })),
  { from: "commands run", policy: { receipts: true, ...VERIFY, ephemeral: true } },
];

/** Returns the broken invariants of a whole session, beyond the invariants of each step. */
function findFaults(walk: Walk, effects: readonly (Effect & { process: number })[]): string[] {
  const { log, state } = walk;
  const requests = (ending: string) =>
    log.flatMap(({ data, type }) => (type.endsWith(ending) && "requestId" in data ? [data.requestId] : []));
  const open = state.requests.map(({ requestId }) => requestId);
  const pushed = effects.flatMap((each) => (each.type === "push" ? [`${each.promptId} ${String(each.process)}`] : []));
  const started = effects.flatMap((effect) => (effect.type === "start" ? [Number(effect.processId)] : []));
  const gone = log.flatMap((event) => (event.type === "process.exited" ? [event.data.processId] : []));
  const prompts = log.flatMap((event) => (event.type === "prompt.queued" ? [event.data.promptId] : []));
  const spent = log.reduce((sum, event) => sum + (event.type === "turn.ended" ? event.data.costUsd : 0), 0);
  const laws = {
    "every ask has one answer or is open": isDeepStrictEqual(
      [...requests(".answered"), ...open].toSorted(),
      requests(".asked").toSorted(),
    ),
    "a prompt is handed to a process once": new Set(pushed).size === pushed.length,
    "processes are counted": started.every((id, n) => id === (started[0] ?? 0) + n),
    "a process ends once": new Set(gone).size === gone.length,
    "turns cost no more than their session": spent <= state.totals.costUsd + 1e-9,
    "a turn whose work is over ends in time": endsInTime(walk),
    "every prompt has an id of its own": new Set(prompts).size === prompts.length,
  };
  return Object.entries(laws).flatMap(([law, holds]) => (holds ? [] : [law]));
}

/** Lets the deadlines of a turn whose work is over pass, without any outcome. */
function endsInTime(walk: Walk): boolean {
  const { turn } = walk.state;
  const isSettling = () => walk.state.turn?.id === turn?.id && walk.state.turn?.settling !== undefined;
  for (let n = 0; n < 6 && isSettling(); n += 1) {
    walk.at = walk.deadline ?? walk.at;
    walk.tick();
  }
  return !isSettling();
}

describe("step", () => {
  it("step keeps every invariant through any history of a session", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("report", "resume"),
        fc.constantFrom(...UNATTENDED),
        fc.constantFrom(...BEGINNINGS),
        fc.array(happening, { maxLength: 60, size: "max" }),
        (onLost, unattended, { from, policy }, life) => {
          const walk = new Walk({ onLost, unattended, ...policy }, from && walkTo(from));
          const effects = life.flatMap((each, n) =>
            applyHappening(walk, each, uniqueOf(n))
              // After `attached`, prompts that may not have arrived are pushed again.
              .filter(({ type }) => each.what !== "attached" || type !== "push")
              .map((effect) => ({ ...effect, process: walk.state.processCount })),
          );
          expect(findFaults(walk, effects)).toEqual([]);
        },
      ),
      { numRuns: amount(50, 1_000) },
    );
  });

  it("step decides nothing by the wall clock, however the clock is set", () => {
    const setBy = fc.integer({ min: -400 * DAY, max: 400 * DAY });
    fc.assert(
      fc.property(fc.array(fc.tuple(happening, setBy), { maxLength: 40, size: "max" }), (life) => {
        const [right, wrong] = [new Walk({ unattended: UNATTENDED[1] }), new Walk({ unattended: UNATTENDED[1] })];
        for (const [n, [each, ms]] of life.entries()) {
          wrong.clockOffsetMs = ms;
          applyHappening(right, each, uniqueOf(n));
          applyHappening(wrong, each, uniqueOf(n));
          expect([wrong.summary, wrong.status, wrong.deadline]).toEqual([right.summary, right.status, right.deadline]);
        }
      }),
      { numRuns: amount(12, 250) },
    );
  });
});
