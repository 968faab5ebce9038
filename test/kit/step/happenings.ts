import assert from "node:assert/strict";
import fc from "fast-check";
import type { CommandOf } from "../../../src/domain/command.ts";
import type { ControlRequest } from "../../../src/domain/control.ts";
import type { AgentSignal } from "../../../src/engine/ports.ts";
import type { Effect } from "../../../src/engine/step.ts";
import { OUTCOMES, outcomeFor, type OutcomeName } from "./evidence-cases.ts";
import {
  AGENT_TASK,
  API_ERROR,
  BEGUN_POLICY,
  requestOf,
  commandInput,
  type Moment,
  currentProcessId,
  resultSignal,
  SHELL_TASK,
  SHIM,
  type Walk,
} from "./walk.ts";

/** Random inputs for walks. */

/** A next input, generated before the state is known: `pick` chooses among the inputs that the state permits. */
export interface Happening {
  readonly what: keyof typeof HAPPENINGS;
  readonly pick: number;
  readonly afterMs: number;
  readonly ofOldProcess: boolean;
}

type Sent = Partial<CommandOf<"prompt">["data"]>;
type Meaning = (walk: Walk, pick: number, unique: string) => Moment | AgentSignal;

const BY = { by: "caller" } as const;
const ASKED: ControlRequest[] = [
  { do: "configure", model: "opus" },
  { do: "configure", permissionMode: "bypassPermissions" },
  { do: "usage" },
  { do: "suspend" },
  { do: "suspend", reason: "slot" },
  { do: "suspend", reason: "forbidden" },
  { do: "rewind", promptId: "p1", dryRun: false },
  { do: "stop-task", taskId: "b1" },
];
const EXITS: AgentSignal[] = [
  { type: "exited", code: 0, signal: null },
  { type: "exited", code: null, signal: "SIGKILL", error: "killed" },
];

const STRICTER = [
  { sandbox: "required" },
  { mayNest: false, rules: { allow: [], ask: [], deny: ["WebFetch"] } },
] as const;

const HAPPENINGS = {
  stricter: ({ at }, pick, unique) => {
    const whenBusy = pick % 3 === 0 ? "steer" : "queue";
    const sent = {
      policy: { ...BEGUN_POLICY, ...STRICTER[pick % 2] },
      environmentId: `e${String(pick % 2)}`,
      whenBusy,
    } as Sent;
    return commandInput(at, "prompt", { promptId: unique, text: "go", ...sent }, unique);
  },
  prompt: ({ at }, _, unique) => commandInput(at, "prompt", { promptId: unique, text: "go" }, unique),
  retry: ({ at }, pick, unique) =>
    commandInput(at, "prompt", { promptId: unique, text: "go", idempotencyKey: `k${String(pick % 3)}` }, unique),
  answer: (walk, pick, unique) => {
    const requestId = openRequest(walk, pick);
    const changed = pick % 2 === 0 ? {} : { updatedInput: { a: 1 } };
    const decision = { behavior: "allow", ...changed } as const;
    return commandInput(walk.at, "answer", { requestId, decision, ...BY, forSession: pick % 3 === 0 }, unique);
  },
  deny: (walk, pick, unique) => {
    const decision = { behavior: "deny", message: "no", ...(pick % 2 === 0 && { interrupt: true }) } as const;
    return commandInput(
      walk.at,
      "answer",
      { requestId: openRequest(walk, pick), decision, ...BY, forSession: false },
      unique,
    );
  },
  passed: (walk, pick, unique) => {
    const why = pick % 2 === 0 ? "dismissed" : "unattended";
    return commandInput(walk.at, "pass", { requestId: openRequest(walk, pick), from: "caller", why }, unique);
  },
  filled: (walk, pick, unique) => {
    const filled = { requestId: openRequest(walk, pick), from: "caller", filled: { decision: "deny" } } as const;
    return commandInput(walk.at, "fill", { ...filled, ...(pick % 2 === 0 && { denial: "no" }) }, unique);
  },
  delivered: (walk, pick, unique) =>
    commandInput(
      walk.at,
      "delivered",
      { requests: [{ requestId: openRequest(walk, pick), whole: pick % 2 === 0 }] },
      unique,
    ),
  extend: (walk, pick, unique) => commandInput(walk.at, "extend", { requestId: openRequest(walk, pick) }, unique),
  queued: ({ at }, pick, unique) => {
    const whenBusy = pick % 2 === 0 ? "queue" : "steer";
    const earlier = pick % 5 === 0 ? { resumeAt: "m1" } : {};
    const bound = pick % 3 === 0 ? { limits: { endWithClient: true } } : {};
    return commandInput(at, "prompt", { promptId: unique, text: "and", whenBusy, ...earlier, ...bound }, unique);
  },
  release: ({ at }, pick, unique) =>
    commandInput(at, "queue", { do: pick % 2 === 0 ? "release" : "drop", ...BY }, unique),
  control: ({ at }, pick, unique) =>
    commandInput(at, "control", { ...BY, request: ASKED[pick % ASKED.length]! }, unique),
  controlled: ({ at }, pick, unique) => {
    const outcome =
      pick % 2 === 0
        ? { ok: true as const, data: {} }
        : { ok: false as const, refusal: { code: "INVALID_ARGUMENT" as const, message: "no" } };
    return { type: "controlled", at, commandId: unique, ...BY, request: ASKED[pick % ASKED.length]!, outcome };
  },
  spent: ({ state }, pick) => ({
    type: "spent",
    costUsdTotal: state.reportedCostUsd + pick / 10,
    atStart: pick % 7 === 0,
  }),
  interrupt: ({ at }, _, unique) => commandInput(at, "interrupt", BY, unique),
  gone: ({ at, state: { queue, turn } }, pick, unique) => {
    const known = [turn?.id, ...queue.map(({ promptId }) => promptId)];
    const promptId = known[pick % known.length] ?? "?";
    return commandInput(at, "interrupt", { ...BY, promptId, isClientGone: true }, unique);
  },
  cancel: ({ at }, _, unique) => commandInput(at, "cancel", BY, unique),
  close: ({ at }, _, unique) => commandInput(at, "close", BY, unique),
  // A process sends `started` once.
  started: ({ state: { process } }, pick) =>
    process.phase !== "none" && process.pid !== undefined
      ? { type: "alive" }
      : { type: "started", pid: pick, startedAt: "77", resumed: pick % 2 === 0, ...(pick % 3 > 0 && { shim: SHIM }) },
  admitted: () => ({ type: "admitted" }),
  ready: () => ({ type: "ready" }),
  alive: () => ({ type: "alive" }),
  reported: (_, pick) => ({ type: "reported", model: `m${String(pick % 2)}` }),
  busy: (_, __, unique) => ({ type: "busy", id: unique }),
  idle: () => ({ type: "idle" }),
  message: (_, __, unique) => ({ type: "message", message: { type: "assistant" }, toolUseId: unique }),
  result: ({ state }, pick) =>
    resultSignal({ promptIds: state.turn?.awaiting ?? [], costUsdTotal: state.reportedCostUsd + pick / 100 }),
  stray: (_, pick) => resultSignal({ text: "", costUsdTotal: pick, ...(pick % 2 === 0 && API_ERROR) }),
  settled: ({ state }) => ({ type: "prompt-settled", promptId: state.turn?.awaiting[0] ?? "?" }),
  background: (_, pick) => ({ type: "background", tasks: [AGENT_TASK, SHELL_TASK].slice(0, pick % 3) }),
  asked: (_, pick, unique) => ({
    type: "asked",
    request: requestOf(unique, pick % 3 === 0 ? { kind: "question" } : {}),
  }),
  withdrawn: (walk, pick) => ({ type: "withdrawn", requestId: openRequest(walk, pick) }),
  notice: () => ({ type: "notice", kind: "retry", message: "once more" }),
  exited: (_, pick) => EXITS[pick % EXITS.length]!,
  due: (walk) => ({ type: "tick", at: Math.max(walk.at, walk.deadline ?? walk.at) }),
  tick: ({ at }) => ({ type: "tick", at }),
  attended: ({ at }) => ({ type: "attended", at }),
  attend: ({ at }, _, unique) => commandInput(at, "attend", {}, unique),
  reach: ({ at }, pick) => ({ type: "reach", at, reach: { caller: pick % 3 > 0, user: pick % 3 > 1 } }),
  recovered: ({ at }, pick) => ({ type: "recovered", at, mayStart: pick % 2 === 0 }),
  attached: ({ at }) => ({ type: "attached", at }),
  "process attached": (_, pick) => ({ type: "attached", lost: pick % 4 === 0 ? pick : 0 }),
  "asked again": (walk, pick) => ({ type: "asked", request: requestOf(openRequest(walk, pick)) }),
  shutdown: ({ at }) => ({ type: "shutdown", at }),
  baseline: (walk) => outcomeFor(walk, "baseline"),
  outcome: (walk, pick) => outcomeFor(walk, outcomeNow(walk, pick)),
  "old outcome": (walk, pick) => {
    const number = (walk.state.turn?.phases ?? 0) - 1 - (pick % 2);
    return { ...outcomeFor(walk, OUTCOME_NAMES[pick % OUTCOME_NAMES.length]!), number } as Moment;
  },
  verify: ({ at }, _, unique) => commandInput(at, "verify", { by: "caller", turnId: unique }, unique),
} satisfies Record<string, Meaning>;

/** Types of the outcomes of a phase. */
const OUTCOME_OF = { judge: "judged", ask: "baseline", verify: "verified", look: "looked" } as const;
const OUTCOME_NAMES = Object.keys(OUTCOMES) as OutcomeName[];

/** Returns an outcome of the present phase; any if the turn is at work. */
function outcomeNow({ state: { turn } }: Walk, pick: number): OutcomeName {
  const { phase } = turn?.settling ?? {};
  const names = OUTCOME_NAMES.filter((name) => !phase || OUTCOMES[name].type === OUTCOME_OF[phase]);
  return names[pick % names.length]!;
}

const WHAT = Object.keys(HAPPENINGS) as (keyof typeof HAPPENINGS)[];
/** Inputs that end a session or its process: drawn a quarter as often as others. */
const RARE = new Set<string>(["cancel", "close", "recovered", "process attached", "shutdown"]);
const OFTEN = WHAT.flatMap((what) => (RARE.has(what) ? [what] : [what, what, what, what]));

/** Signals up to `started`; `BEFORE_READY` has the signals up to `ready`. All others come later. */
const BEFORE_START = new Set<string>(["admitted", "started", "alive", "notice", "exited"]);
const BEFORE_READY = new Set<string>([...BEFORE_START, "ready"]);

export const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.constantFrom(...OFTEN, "prompt", "ready", "result", "idle", "outcome", "outcome"),
  pick: fc.nat(20),
  afterMs: fc.oneof(fc.constant(0), fc.nat(5000), fc.nat(700_000)),
  ofOldProcess: fc.boolean(),
});

/** Returns an id whose siblings are ids of nothing else (`siblingOf`). */
export const uniqueOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(11, "0")}0`;

function openRequest({ state: { requests, answered } }: Walk, pick: number): string {
  const known = [...requests, ...requests, ...answered].map(({ requestId }) => requestId);
  return known[pick % (known.length + 1)] ?? "?";
}

/** Applies an input. With `ofOldProcess`, also applies the signal for an old process, to no effect. */
export function applyHappening(walk: Walk, { what, pick, afterMs, ofOldProcess }: Happening, unique: string): Effect[] {
  walk.at += afterMs;
  const meant: Moment | AgentSignal = (HAPPENINGS[what] as Meaning)(walk, pick, unique);
  if ("at" in meant) {
    walk.at = meant.at;
    return walk.take(meant).last.effects;
  }
  if (ofOldProcess) {
    walk.take({ type: "signal", at: walk.at, processId: "0", signal: meant });
    assert.equal(walk.summary, "");
  }
  const before = missingSignals(walk, what, pick).flatMap((signal) => walk.hear(signal).last.effects);
  const line = walk.log.length;
  const said = walk.take({ type: "signal", at: walk.at, processId: currentProcessId(walk.state), signal: meant, line });
  return [...before, ...said.last.effects];
}

/** Returns the signals that the process must have sent before `what`. */
function missingSignals({ state: { process, turn } }: Walk, what: string, pick: number): AgentSignal[] {
  if (process.phase !== "starting" || BEFORE_START.has(what)) return [];
  const missing = turn?.prompt && pick % 3 === 0 ? { missing: [turn.prompt.promptId] } : {};
  const known = { pid: pick, startedAt: "77", host: "m", ...(pick % 3 > 0 && { shim: SHIM }) };
  const started = { type: "started", resumed: pick % 2 === 0, ...known, ...missing } as const;
  const first = process.pid === undefined ? [started] : [];
  return BEFORE_READY.has(what) ? first : [...first, { type: "ready" }];
}
