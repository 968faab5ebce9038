import { type BudgetDay, EMPTY_DAY } from "../../../src/domain/budget.ts";
import { accountKey, budgetKey } from "../../../src/domain/ledger.ts";
import { mergeReport, type PlanReport } from "../../../src/domain/plan.ts";
import type { Policy, UsePolicy } from "../../../src/engine/policy/policy.ts";
import { UNLIMITED_USE } from "../../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../../src/engine/ports.ts";
import { ACCOUNT, API_ERROR, type Moment, resultSignal, SECOND, T0, Walk } from "./walk.ts";

/** Turns at limits: of the plan, of the operator's reserve and of budgets. */

const idle: AgentSignal = { type: "idle" };
const killed: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const HOUR = 3_600 * SECOND;
/** Reset of the window in every refusal. */
export const RESET = T0 + HOUR;
const LIMIT = { window: "five_hour", resetsAt: RESET };

/** Result of a request that the API has refused. `promptId` is the message that sent the request. */
export const refused = (promptId: string, limit: typeof LIMIT = LIMIT) =>
  resultSignal({ ...API_ERROR, category: "limit", promptIds: [promptId], limit, text: "You've hit your 5-hour limit" });

const windows = (window: string, percent: number): PlanReport => ({
  isUsingOverage: false,
  windows: [{ window, usedPercent: percent, resetsAt: RESET, source: "headers" }],
});

/** Records that `percent` of a window are used. */
export const used = (walk: Walk, window: string, percent: number): Walk =>
  walk.enter(
    accountKey(ACCOUNT.id),
    mergeReport(undefined, ACCOUNT, { report: windows(window, percent), at: walk.at }),
  );

export const USE: UsePolicy = { ...UNLIMITED_USE, marginMs: SECOND };
export const RESERVE = { use: { ...USE, reserve: { fiveHour: 15, sevenDay: 20 } } };
const BUDGET = { scope: "principal", name: "local", usdPerDay: 8 } as const;
export const BUDGETS = { use: { ...USE, budgets: [BUDGET] } };
const WAITS = { onLimit: "wait" } as const;

/** Records the spending of the day. */
export const spent = (walk: Walk, day: Partial<BudgetDay>): Walk =>
  walk.enter(budgetKey(BUDGET, walk.known.day), { ...EMPTY_DAY, ...day });

/** Lets time pass until the wait is over. */
export function over(walk: Walk): Walk {
  walk.at = walk.state.waiting?.until ?? walk.at;
  return walk.tick();
}

/** Lets time pass until just before the end of the wait. */
function nearlyOver(walk: Walk): Walk {
  walk.at = (walk.state.waiting?.until ?? walk.at) - 1;
  return walk.tick();
}

export const OVERAGE: AgentSignal = { type: "plan", account: ACCOUNT, report: { isUsingOverage: true, windows: [] } };

type Environment = { readonly type: "environment"; readonly environmentId?: string };

/** Outcomes of the search for an environment. */
export const FOUND = {
  "environment found": { type: "environment", environmentId: "e1" },
  "no environment": { type: "environment" },
} satisfies Record<string, Environment>;
export type FoundName = keyof typeof FOUND;

export function isFound(name: string): name is FoundName {
  return name in FOUND;
}

export function foundFor({ at, state }: Walk, name: FoundName): Moment {
  return { at, turnId: state.turn?.id ?? "?", ...FOUND[name] };
}

const on = (from: Walk, policy: Partial<Policy>) => new Walk(policy, from);
const find = (walk: Walk, name: FoundName) => walk.take(foundFor(walk, name));
const goneOnId = (walk: Walk) => walk.state.turn?.goneOn ?? "?";

type Base = Readonly<Record<"running" | "shimRunning" | "done", () => Walk>>;

/** Returns states by name, each reached from one of `base`. */
export function limitWalks({ done, running, shimRunning }: Base) {
  const waiting = () => on(running(), { ...WAITS, use: USE }).hear(refused("p1"), idle);
  const gone = () => waiting().hear(killed);
  const searching = () => over(gone());
  const sent = () => over(waiting());
  const again = () => sent().hear(refused(goneOnId(sent())), idle);
  const reported = () => on(running(), { use: USE }).hear(refused("p1"), idle);
  const stopped = () =>
    used(on(running(), RESERVE), "seven_day", 81).hear({ type: "message", message: {}, toolUseId: "t1" });
  return {
    "refused at a limit": reported,
    "refused at a limit, reset passed": () => reported().later(2 * 3_600),
    "refused, ends with its client": () =>
      new Walk({ ...WAITS, use: USE })
        .promptWith("p1", { limits: { endWithClient: true } })
        .hear({ type: "admitted" }, { type: "started", resumed: false }, { type: "ready" }, refused("p1"), idle),
    "waiting at a limit": waiting,
    "waiting at a limit, another session found the window free": () => used(waiting().later(1), "five_hour", 10),
    "refused at a limit, not idle yet": () => on(running(), { ...WAITS, use: USE }).hear(refused("p1")),
    "waiting at a limit, a prompt waits": () => waiting().promptWith("p2", { whenBusy: "queue" }),
    "waiting at a limit, process closed": () => waiting().later(900).tick(),
    "waiting at a limit, no process": gone,
    "waiting at a limit, in a shim": () => on(shimRunning(), { ...WAITS, use: USE }).hearLine(9, refused("p1"), idle),
    "waiting at a limit, kept nowhere": () => on(waiting(), { ...WAITS, use: USE, ephemeral: true }),
    "searching an environment": searching,
    "waiting for an environment": () => find(searching(), "no environment"),
    "refused request sent again": sent,
    "refused request sent again by a new process": () => find(searching(), "environment found"),
    "refused again": again,
    "refused again, at the end of the back-off": () => nearlyOver(again()),
    "answered after the reset": () => sent().hear(resultSignal({ promptIds: [goneOnId(sent())] })),
    continued: () =>
      reported()
        .later(2 * 3_600)
        .command("continue", { by: "caller", turnId: "00000000-0000-4000-8000-000000000008" }),
    "idle, above the 5-hour line": () => used(on(done(), RESERVE), "five_hour", 86),
    "idle, above the 5-hour line, waits": () => used(on(done(), { ...RESERVE, ...WAITS }), "five_hour", 86),
    "held back by the reserve": () => used(on(done(), { ...RESERVE, ...WAITS }), "five_hour", 86).prompt("p2"),
    "running, above the 5-hour line, a prompt waits": () =>
      used(on(running(), RESERVE), "five_hour", 86).promptWith("p2", { whenBusy: "queue" }),
    "running, above the weekly line": () => used(on(running(), RESERVE), "seven_day", 81),
    "running, with a reserve": () => on(running(), RESERVE),
    "stopped at the weekly line": stopped,
    "ended at the weekly line": () => stopped().hear(resultSignal({ promptIds: ["p1"], isError: true }), idle),
    "idle, with a budget": () => on(done(), BUDGETS),
    "idle, budget spent": () => spent(on(done(), BUDGETS), { spentUsd: 7, reserved: { other: 1 } }),
    "running, with a budget": () => on(done(), BUDGETS).prompt("p2"),
  } satisfies Record<string, () => Walk>;
}
