import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CommandOf } from "../../src/domain/command.ts";
import type { ControlRequest } from "../../src/domain/control.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import type { Effect } from "../../src/engine/step.ts";
import { amount } from "../kit/runner/amount.ts";
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
  Walk,
} from "../kit/step/walk.ts";

/** A next input, generated before the state is known: `pick` chooses among the inputs that the state permits. */
interface Happening {
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
} satisfies Record<string, Meaning>;

const DAY = 86_400_000;

/** Limits of unattended work. `UNATTENDED` is `undefined` for a server that ends with its clients. */
const BOUNDS = { afterMs: 600_000, maxMs: 1_200_000, maxUsd: 1 };
const UNATTENDED = [undefined, { ...BOUNDS, requests: "wait" as const }, { ...BOUNDS, requests: "deny" as const }];

const WHAT = Object.keys(HAPPENINGS) as (keyof typeof HAPPENINGS)[];
/** Inputs that end a session or its process: drawn a quarter as often as others. */
const RARE = new Set<string>(["cancel", "close", "recovered", "process attached", "shutdown"]);
const OFTEN = WHAT.flatMap((what) => (RARE.has(what) ? [what] : [what, what, what, what]));

/** Signals up to `started`; `BEFORE_READY` has the signals up to `ready`. All others come later. */
const BEFORE_START = new Set<string>(["admitted", "started", "alive", "notice", "exited"]);
const BEFORE_READY = new Set<string>([...BEFORE_START, "ready"]);

const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.constantFrom(...OFTEN, "prompt", "ready", "result", "idle"),
  pick: fc.nat(20),
  afterMs: fc.oneof(fc.constant(0), fc.nat(5000), fc.nat(700_000)),
  ofOldProcess: fc.boolean(),
});

function openRequest({ state: { requests, answered } }: Walk, pick: number): string {
  const known = [...requests, ...requests, ...answered].map(({ requestId }) => requestId);
  return known[pick % (known.length + 1)] ?? "?";
}

/** Applies an input. With `ofOldProcess`, also applies the signal for an old process, to no effect. */
function applyHappening(walk: Walk, { what, pick, afterMs, ofOldProcess }: Happening, unique: string): Effect[] {
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
  const known = { pid: pick, startedAt: "77", ...(pick % 3 > 0 && { shim: SHIM }) };
  const started = { type: "started", resumed: pick % 2 === 0, ...known, ...missing } as const;
  const first = process.pid === undefined ? [started] : [];
  return BEFORE_READY.has(what) ? first : [...first, { type: "ready" }];
}

/** Returns the broken invariants of a whole session, beyond the invariants of each step. */
function findFaults({ log, state }: Walk, effects: readonly (Effect & { process: number })[]): string[] {
  const requests = (ending: string) =>
    log.flatMap(({ data, type }) => (type.endsWith(ending) && "requestId" in data ? [data.requestId] : []));
  const open = state.requests.map(({ requestId }) => requestId);
  const pushed = effects.flatMap((each) => (each.type === "push" ? [`${each.promptId} ${String(each.process)}`] : []));
  const started = effects.flatMap((effect) => (effect.type === "start" ? [Number(effect.processId)] : []));
  const gone = log.flatMap((event) => (event.type === "process.exited" ? [event.data.processId] : []));
  const spent = log.reduce((sum, event) => sum + (event.type === "turn.ended" ? event.data.costUsd : 0), 0);
  const laws = {
    "every ask has one answer or is open": isDeepStrictEqual(
      [...requests(".answered"), ...open].toSorted(),
      requests(".asked").toSorted(),
    ),
    "a prompt is handed to a process once": new Set(pushed).size === pushed.length,
    "processes are counted": started.every((id, n) => id === n + 1),
    "a process ends once": new Set(gone).size === gone.length,
    "turns cost no more than their session": spent <= state.totals.costUsd + 1e-9,
  };
  return Object.entries(laws).flatMap(([law, holds]) => (holds ? [] : [law]));
}

describe("step", () => {
  it("step keeps every invariant through any history of a session", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("report", "resume"),
        fc.constantFrom(...UNATTENDED),
        fc.array(happening, { maxLength: 60, size: "max" }),
        (onLost, unattended, life) => {
          const walk = new Walk({ onLost, unattended });
          const effects = life.flatMap((each, n) =>
            applyHappening(walk, each, `u${String(n)}`)
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
          applyHappening(right, each, `u${String(n)}`);
          applyHappening(wrong, each, `u${String(n)}`);
          expect([wrong.summary, wrong.status, wrong.deadline]).toEqual([right.summary, right.status, right.deadline]);
        }
      }),
      { numRuns: amount(12, 250) },
    );
  });
});
