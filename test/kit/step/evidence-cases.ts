import { NOTHING_CHANGED } from "../receipts.ts";
import type { Policy } from "../../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../../src/engine/ports.ts";
import { ABORTED, type Moment, resultSignal, SECOND, Walk } from "./walk.ts";

/** Ends of turns on a server with receipts: states, and outcomes of what the server does. */

const idle: AgentSignal = { type: "idle" };
const ended: AgentSignal = { type: "exited", code: 0, signal: null };
const killed: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const QUEUED = { whenBusy: "queue" } as const;
export const VERIFY = { verify: { commands: ["make check"], attempts: 1, timeoutMs: 60 * SECOND } };
const BEFORE = { folders: [{ path: "/project", kind: "git", head: "a1", files: {} }] } as const;
const SEEN = { receipt: NOTHING_CHANGED, after: { folders: [...BEFORE.folders] } };
const RED = { command: "make check", exit: 2, ms: 10, tail: "2 failed" };
const JUDGED = { commands: [{ command: "make check", judged: {} }], of: 2, own: {}, mode: "default" } as const;

type Outcome = { readonly type: "baseline" | "judged" | "verified" | "looked" } & Record<string, unknown>;

/** Outcomes of what the server does at the beginning and the end of a turn. */
export const OUTCOMES = {
  baseline: { type: "baseline", before: BEFORE, between: 2 },
  "commands judged": { type: "judged", ...JUDGED },
  "commands allowed": { type: "judged", ...JUDGED, own: { allowedTools: ["Bash(make:*)"] } },
  "commands denied": { type: "judged", ...JUDGED, mode: "dontAsk" },
  "commands refused": { type: "judged", refused: "The sandbox." },
  "commands passed": { type: "verified", outcome: { status: "passed", commands: [{ ...RED, exit: 0 }] } },
  "command failed": { type: "verified", outcome: { status: "failed", commands: [RED] } },
  "command took too long": { type: "verified", outcome: { status: "timeout", commands: [{ ...RED, exit: null }] } },
  "commands lost": { type: "verified", outcome: { status: "lost", commands: [], message: "No shell." } },
  looked: { type: "looked", seen: SEEN },
  "looked, nothing to be read": { type: "looked" },
} satisfies Record<string, Outcome>;

export type OutcomeName = keyof typeof OUTCOMES;

export function isOutcome(name: string): name is OutcomeName {
  return name in OUTCOMES;
}

/** Returns the outcome for the present phase of the running turn. */
export function outcomeFor({ at, state: { turn } }: Walk, name: OutcomeName): Moment {
  const { id: turnId = "?", settling: { number = 0 } = {} } = turn ?? {};
  return { at, turnId, number, ...OUTCOMES[name] } as Moment;
}

/** Takes outcomes, one after the other. */
export function heard(walk: Walk, ...names: OutcomeName[]): Walk {
  return names.reduce((each, name) => each.take(outcomeFor(each, name)), walk);
}

/** Continues `from` on a server with receipts. */
export const receipts = (from: Walk, over: Partial<Policy> = {}) => new Walk({ receipts: true, ...over }, from);

type Base = Readonly<Record<"running" | "settled" | "interrupted" | "done" | "ending" | "shimRunning", () => Walk>>;

/** Returns states by name, each reached from one of `base`. */
export function evidenceWalks({ done, ending, interrupted, running, settled, shimRunning }: Base) {
  const looking = () => heard(receipts(settled()), "baseline").hear(idle);
  const judging = () => receipts(settled(), VERIFY).hear(idle);
  const askingForCommands = () => heard(judging(), "commands judged");
  const verifying = () => heard(judging(), "commands allowed");
  const repairing = () => heard(verifying(), "command failed");
  const repairedOf = (walk: Walk) =>
    walk.hear(resultSignal({ promptIds: walk.state.turn?.awaiting ?? [], costUsdTotal: 0.6 }), idle);
  const onDemand = (from: Walk) =>
    receipts(from, VERIFY).later(1).command("verify", { by: "caller", turnId: "00000000-0000-4000-8000-000000000001" });

  return {
    "running, with receipts": () => receipts(running(), VERIFY),
    looking,
    looked: () => heard(looking(), "looked"),
    "looking, prompt waits": () => looking().promptWith("p2", QUEUED),
    "looking, process gone": () => looking().hear(killed),
    "looking after an interrupt": () =>
      receipts(interrupted()).hear(resultSignal({ ...ABORTED, promptIds: ["p1"] }), idle),
    "idle, with receipts": () => receipts(done(), VERIFY),
    "judging commands": judging,
    "asking for commands": askingForCommands,
    "asking for commands, process gone": () => askingForCommands().hear(ended),
    "commands run": verifying,
    "commands run, in a shim": () =>
      heard(receipts(shimRunning(), VERIFY).hearLine(9, resultSignal({ promptIds: ["p1"] }), idle), "commands allowed"),
    "commands run, process gone": () => verifying().hear(killed),
    repairing,
    "repaired, commands run": () => heard(repairedOf(repairing()), "commands allowed"),
    "commands run on demand": () => heard(onDemand(done()), "commands allowed"),
    "commands run on demand, without a process": () => heard(onDemand(ending().hear(ended)), "commands allowed"),
  } satisfies Record<string, () => Walk>;
}
