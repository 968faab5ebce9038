import type { AgentSignal } from "../../../src/engine/ports.ts";
import type { Input } from "../../../src/engine/step.ts";
import {
  ABORTED,
  AGENT_TASK,
  API_ERROR,
  requestOf,
  commandInput,
  type Moment,
  POLICY,
  currentProcessId,
  resultSignal,
  withElapsed,
} from "./walk.ts";
import { evidenceWalks, isOutcome, OUTCOMES, outcomeFor, type OutcomeName } from "./evidence-cases.ts";
import { foundFor, FOUND, type FoundName, isFound, limitWalks, OVERAGE, refused } from "./limit-cases.ts";
import { ANSWERS, COMMANDS, forbidden, isCommand, type CommandName } from "./commands.ts";
import { SECOND, SHELL_TASK, SHIM, Walk } from "./walk.ts";

const ASKED: AgentSignal = { type: "asked", request: requestOf("a1") };

/** States of a session of every kind, each reached by real inputs. */

const started: AgentSignal = { type: "started", pid: 4711, startedAt: "77", resumed: false };
const killed: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const ended: AgentSignal = { type: "exited", code: 0, signal: null };
/** The process outlives its server, because `shim` is set. */
const shimmed: AgentSignal = { ...started, shim: SHIM };
const idle: AgentSignal = { type: "idle" };
const busy: AgentSignal = { type: "busy", id: "self-1" };

const admitted: AgentSignal = { type: "admitted" };
const waiting = () => new Walk().prompt("p1", "k1");
const starting = () => waiting().hear(admitted);
const running = () => starting().later(1).hear(started, { type: "ready" }, busy);
const shimRunning = () => starting().later(1).hear(shimmed, { type: "ready" }).hearLine(7, busy);
const asking = () => running().later(1).hear(ASKED);
const askingUser = () => new Walk().promptWith("p1", {}).hear(admitted, started, { type: "ready" }, busy, ASKED);
const interrupted = () => running().later(1).command("interrupt", { by: "caller" });
const settled = () =>
  running()
    .later(1)
    .hear(resultSignal({ promptIds: ["p1"], costUsdTotal: 0.5 }));
const done = () => settled().hear(idle);
const shell = () =>
  running().hear({ type: "background", tasks: [SHELL_TASK] }, resultSignal({ promptIds: ["p1"] }), idle);
const selfTurn = () => done().later(1).hear(busy);
const ending = () => done().due();

const [QUEUED, BOUND] = [{ whenBusy: "queue" }, { limits: { endWithClient: true } }] as const;
const QUEUED_BOUND = { ...QUEUED, ...BOUND };
const bound = () =>
  new Walk({ onLost: "resume" }).promptWith("p1", BOUND).hear(admitted, started, { type: "ready" }, busy);

const OVER_BUDGET = { isError: true, subtype: "error_max_budget_usd", terminalReason: "budget_exhausted" } as const;
const agentLeft: AgentSignal = { type: "idle", agents: ["t1"] };
const leaving = () =>
  running().hear(
    { type: "background", tasks: [SHELL_TASK] },
    resultSignal({ ...OVER_BUDGET, category: "limit", promptIds: ["p1"], costUsdTotal: 0.1 }),
    agentLeft,
  );

const UNATTENDED = { requests: "wait", afterMs: 60 * SECOND, maxMs: 120 * SECOND, maxUsd: 10 } as const;
const unattended = () =>
  new Walk({ unattended: UNATTENDED }, running()).take({
    type: "reach",
    at: running().at,
    reach: { caller: false, user: false },
  });

const boundInShim = () => new Walk().promptWith("p1", BOUND).hear(admitted, shimmed, { type: "ready" }, busy);

const toSuspend = { by: "caller", request: { do: "suspend" } } as const;

const WALKS = {
  fresh: () => new Walk(),
  "waiting for a slot": waiting,
  starting,
  "started again": () => waiting().later(1).recover().later(1).hear(admitted),
  "waiting, ends with its client": () => new Walk().promptWith("p1", BOUND),
  running,
  asking,
  "asking the user": askingUser,
  "asking the user, seen": () =>
    askingUser().command("delivered", { requests: [{ requestId: "a1", whole: true, approver: "user" }] }),
  "asking the caller after the user": () => askingUser().due(),
  "asking what a caller may not": () => new Walk({ callerApproves: "reads" }, askingUser()),
  "two requests": () => asking().hear({ type: "asked", request: requestOf("a2", { toolName: "Write" }) }),
  question: () =>
    running().hear({ type: "asked", request: requestOf("a1", { kind: "question", toolName: "AskUserQuestion" }) }),
  "shown cut": () => asking().command("delivered", { requests: [{ requestId: "a1", whole: false }] }),
  "shown whole": () => asking().command("delivered", { requests: [{ requestId: "a1", whole: true }] }),
  "result seen": settled,
  "agent at work": () =>
    running().hear({ type: "background", tasks: [AGENT_TASK] }, resultSignal({ promptIds: ["p1"] })),
  "starting, interrupted": () => starting().command("interrupt", { by: "caller" }),
  interrupted,
  "interrupted, killed": () => interrupted().due(),
  "asking, interrupted": () => interrupted().hear(ASKED),
  "subagent left": leaving,
  "subagent left, killed": () => leaving().due(),
  "subagent left, a prompt waits": () => leaving().promptWith("p2", { whenBusy: "queue" }),
  "self turn": selfTurn,
  "self turn, prompt waits": () => selfTurn().prompt("p2", "k2"),
  "self turn, result seen, prompt waits": () =>
    selfTurn()
      .prompt("p2")
      .hear(resultSignal({ costUsdTotal: 0.6 })),
  "idle, live": done,
  "idle, shell at work": shell,
  "idle, shell at work, to rest": () => shell().command("control", toSuspend),
  "running, prompt waits, forbidden": () =>
    running().promptWith("p2", { whenBusy: "queue" }).command("control", forbidden),
  "running, shell at work, forbidden": () =>
    running()
      .hear({ type: "background", tasks: [SHELL_TASK] })
      .command("control", forbidden),
  "running, run on when lost, forbidden": () => new Walk({ onLost: "resume" }, running()).command("control", forbidden),
  "result seen, to rest": () => settled().command("control", toSuspend),
  "idle, ending": ending,
  "idle, no process": () => ending().hear(ended),
  "prompt waits for the exit": () => ending().prompt("p2"),
  "prompt waits, stopped": () => ending().prompt("p2").due(),
  "lost, run on": () => new Walk({ onLost: "resume" }, running()).hear(killed, admitted),
  failed: () => running().hear(resultSignal({ ...API_ERROR, promptIds: ["p1"] }), idle),
  "lost, prompt held": () => selfTurn().prompt("p2").hear(killed),
  "interrupted, prompt held": () => selfTurn().prompt("p2").command("interrupt", { by: "caller" }).hear(idle),
  "prompt queued behind a turn": () => running().promptWith("p2", { whenBusy: "queue" }),
  "ends with its client, to run on, prompts wait": () =>
    bound().promptWith("p2", QUEUED_BOUND).promptWith("p3", QUEUED),
  "no client there, unattended": () => unattended().due(),
  "no client there, asking": () => unattended().hear(ASKED),
  "unattended for too long, prompt waits": () => unattended().promptWith("p2", QUEUED).due().due(),
  "unattended, cost told": () => unattended().due().hear({ type: "spent", costUsdTotal: 0.1, atStart: false }),
  steered: () => running().promptWith("p2", { whenBusy: "steer" }),
  "in a shim": shimRunning,
  "in a shim, not up": () => starting().hear(shimmed),
  "in a shim, asking": () => shimRunning().hearLine(9, ASKED),
  "in a shim, answered": () =>
    shimRunning()
      .hearLine(9, ASKED)
      .command("answer", {
        requestId: "a1",
        by: "caller",
        forSession: false,
        decision: {
          behavior: "allow",
          updatedPermissions: [{ type: "setMode", mode: "plan", destination: "session" }],
        },
      }),
  "in a shim, steered, a prompt waits": () =>
    shimRunning().promptWith("p2", { whenBusy: "steer" }).promptWith("p3", QUEUED_BOUND).promptWith("p4", QUEUED),
  "in a shim, interrupted": () => shimRunning().command("interrupt", { by: "caller" }).later(4),
  "in a shim, killed": () => shimRunning().command("interrupt", { by: "caller" }).due(),
  "in a shim, result seen": () => shimRunning().hearLine(9, resultSignal({ promptIds: ["p1"] })),
  "in a shim, agent at work": () =>
    shimRunning().hearLine(9, { type: "background", tasks: [AGENT_TASK] }, resultSignal({ promptIds: ["p1"] })),
  "in a shim, idle": () => shimRunning().hearLine(9, resultSignal({ promptIds: ["p1"] }), idle),
  "in a shim, prompt waits for the exit": () =>
    shimRunning()
      .hearLine(9, resultSignal({ promptIds: ["p1"] }), idle)
      .due()
      .prompt("p2"),
  "in a shim, ends with its client": boundInShim,
  "in a shim, cancelled": () => shimRunning().command("cancel", { by: "caller" }),
  "in a shim, run on": () =>
    new Walk({ onLost: "resume" }, running()).hear(killed, admitted, { ...shimmed, resumed: true }),
  "in a shim, run on, the prompt was missing": () =>
    new Walk({ onLost: "resume" }, running()).hear(killed, admitted, { ...shimmed, resumed: true, missing: ["p1"] }),
  "in a shim, kept nowhere": () => new Walk({ ephemeral: true }, shimRunning()),
  "prompt from an earlier point": () => done().promptWith("p2", { resumeAt: "m1" }),
  "lost, run on, up": () => new Walk({ onLost: "resume" }, running()).hear(killed, started, { type: "ready" }),
  "lost with a steered prompt, run on": () =>
    new Walk({ onLost: "resume" }, running().promptWith("p2", { whenBusy: "steer" })).hear(killed),
  "started to be asked": () =>
    ending()
      .hear(ended)
      .command("control", { by: "caller", request: { do: "usage" } }),
  "kept nowhere, running": () => new Walk({ ephemeral: true }, running()),
  "kept nowhere, idle": () => new Walk({ ephemeral: true }, done()),
  "kept nowhere, gone": () => new Walk({ ephemeral: true }, running()).hear(killed),
  "shut down": () => running().take({ type: "shutdown", at: POLICY.initMs }),
  cancelled: () => running().command("cancel", { by: "caller" }),
  "cancelled, gone": () => running().command("cancel", { by: "caller", reason: "no need" }).hear(killed),
  "cancelled, shell at work": () => shell().command("cancel", { by: "caller" }),
  closed: () => done().command("close", { by: "caller" }).hear(ended),
  ...limitWalks({ running, shimRunning, done }),
  ...evidenceWalks({ running, settled, interrupted, done, ending, shimRunning }),
} satisfies Record<string, () => Walk>;

export type StateName = keyof typeof WALKS;

export function walkTo(name: StateName): Walk {
  return WALKS[name]();
}

export const STATE_NAMES = Object.keys(WALKS).filter((name): name is StateName => name in WALKS);

const SIGNALS = {
  admitted,
  started,
  "started, prompts missing": { type: "started", resumed: true, missing: ["p1", "p2"] },
  "started without pid": { type: "started", resumed: true },
  "process attached": { type: "attached", lost: 0 },
  "process attached, lines lost": { type: "attached", lost: 2 },
  ready: { type: "ready" },
  alive: { type: "alive" },
  reported: { type: "reported", model: "opus", permissionMode: "plan" },
  "reported nothing": { type: "reported" },
  busy: { type: "busy", id: "self-9" },
  idle,
  "idle, a subagent left": agentLeft,
  message: { type: "message", message: { type: "assistant" } },
  "tool use": { type: "message", message: { type: "assistant" }, toolUseId: "toolu_9" },
  result: resultSignal({ promptIds: ["p1", "p2"], costUsdTotal: 0.7 }),
  "result of no prompt": resultSignal({ text: "", numTurns: 0, costUsdTotal: 0.7 }),
  "result failed": resultSignal({ ...API_ERROR, promptIds: ["p1"], costUsdTotal: 0.7 }),
  "result aborted": resultSignal({ ...ABORTED, promptIds: ["p1"], text: "", costUsdTotal: 0.7 }),
  "result after /clear": resultSignal({ promptIds: ["p1"], numTurns: 0, costUsdTotal: 0 }),
  "result, refused at a limit": refused("p1"),
  "overage in use": OVERAGE,
  spent: { type: "spent", costUsdTotal: 0.2, atStart: false },
  "spent too much": { type: "spent", costUsdTotal: 1000, atStart: false },
  "spent before": { type: "spent", costUsdTotal: 0.3, atStart: true },
  "prompt settled": { type: "prompt-settled", promptId: "p1" },
  "prompt settled, unknown": { type: "prompt-settled", promptId: "?" },
  "background begins": { type: "background", tasks: [AGENT_TASK, SHELL_TASK] },
  "background ends": { type: "background", tasks: [] },
  asked: { type: "asked", request: requestOf("a9", { agentId: "t1", decisionReason: "why", blockedPath: "/etc" }) },
  "asked again": ASKED,
  "question asked": { type: "asked", request: requestOf("a9", { kind: "question", toolName: "AskUserQuestion" }) },
  withdrawn: { type: "withdrawn", requestId: "a1" },
  "withdrawn, unknown": { type: "withdrawn", requestId: "?" },
  notice: { type: "notice", kind: "retry", message: "once more" },
  "notice with details": { type: "notice", kind: "warning", message: "hm", details: { a: [1] } },
  ended,
  killed,
  "never came up": { type: "exited", code: 1, signal: null, error: "no such file" },
} satisfies Record<string, AgentSignal>;

type SignalName = keyof typeof SIGNALS;
type AnswerName = keyof typeof ANSWERS;
const BARE = ["tick", "recovered", "recovered, may start", "attached", "shutdown"] as const;
export type InputName =
  AnswerName | OutcomeName | FoundName | CommandName | SignalName | "tick when due" | (typeof BARE)[number];

/** Returns the input one second after the last; `tick when due` comes at the next deadline. */
export function inputFor(walk: Walk, name: InputName): Input {
  return withElapsed(walk.heardAt, momentFor(walk, name));
}

function momentFor(walk: Walk, name: InputName): Moment {
  const at = walk.at + SECOND;
  if (name === "tick" || name === "recovered" || name === "attached" || name === "shutdown") return { type: name, at };
  if (name === "recovered, may start") return { type: "recovered", at, mayStart: true };
  if (name === "tick when due") return { type: "tick", at: walk.deadline ?? at };
  if (isFound(name)) return { ...foundFor(walk, name), at };
  if (isOutcome(name)) return { ...outcomeFor(walk, name), at };
  if (isAnswer(name)) return { type: "controlled", at, ...ANSWERS[name] };
  if (isCommand(name)) return commandInput(at, COMMANDS[name].kind, COMMANDS[name].data);
  return { type: "signal", at, processId: currentProcessId(walk.state), signal: SIGNALS[name] };
}

function isAnswer(name: string): name is AnswerName {
  return name in ANSWERS;
}

/** Returns inputs of every kind, signals of an old process, and ticks around every deadline. */
export function inputsFor(walk: Walk): [name: string, input: Input][] {
  const names = [
    ...Object.keys(COMMANDS),
    ...Object.keys(SIGNALS),
    ...Object.keys(ANSWERS),
    ...Object.keys(OUTCOMES),
    ...Object.keys(FOUND),
    ...BARE,
  ] as InputName[];
  const at = walk.at + SECOND;
  const ofOthers = Object.entries(SIGNALS).map(([name, signal]): [string, Input] => [
    `${name}, of an old process`,
    withElapsed(walk.heardAt, { type: "signal", at, processId: "0", signal }),
  ]);
  const due = [walk.deadline, ...walk.state.requests.map((request) => request.expiresAt)];
  const times = [...due, walk.at + walk.policy.turnMaxMs, walk.at + 10 * walk.policy.requestMaxMs];
  const ticks = times
    .filter((time) => time !== undefined)
    .flatMap((time) => [time - 1, time, time + 1])
    .map((time): [string, Input] => [
      `tick at +${String(time - walk.at)} ms`,
      withElapsed(walk.heardAt, { type: "tick", at: time }),
    ]);
  return [...names.map((name): [string, Input] => [name, inputFor(walk, name)]), ...ofOthers, ...ticks];
}
