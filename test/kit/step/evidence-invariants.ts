import { isDeepStrictEqual } from "node:util";
import { VERIFICATION_TOOL } from "../../../src/domain/verification.ts";
import type { Effect } from "../../../src/engine/step.ts";
import { type Case, count, type Invariant, ofType } from "./invariant.ts";

/** Invariants of every step at the end of a turn. */

const PHASES = new Set<Effect["type"]>(["judge", "verify", "look"]);

export const EVIDENCE_INVARIANTS: Readonly<Record<string, Invariant>> = {
  "an outcome of an earlier phase, or of another turn, does nothing": ({
    before: { turn },
    effects,
    events,
    input,
  }) => {
    if (input.type !== "judged" && input.type !== "verified" && input.type !== "looked") return true;
    const isPresent = turn?.id === input.turnId && turn.settling?.number === input.number;
    return isPresent || (events.length === 0 && effects.length === 0);
  },
  "a phase begins with its effect, or with the request for the commands": (the) => {
    const { turn } = the.after;
    const { number, phase } = turn?.settling ?? {};
    const begun = the.effects.filter(({ type }) => PHASES.has(type));
    if (!entersPhase(the)) return begun.length === 0 || isTakenOver(the);
    if (phase === "ask") return the.after.requests.some(({ requestId }) => requestId === turn?.verification?.requestId);
    return isDeepStrictEqual(begun, [{ type: phase, turnId: turn?.id, number }]);
  },
  "an owner that takes over begins the phase anew, unless a request is open": (the) => {
    const { before, after } = the;
    if (!isTakenOver(the) || before.turn?.settling === undefined || before.turn.id !== after.turn?.id) return true;
    return before.turn.settling.phase === "ask" || entersPhase(the);
  },
  "commands run only if a rule or an approver has allowed them": ({ before, effects, input }) => {
    if (ofType(effects, "verify").length === 0) return true;
    if (input.type !== "judged" || !("commands" in input)) return false;
    return before.turn?.verification?.allowed !== undefined || (input.own.allowedTools ?? []).length > 0;
  },
  "commands count as allowed after an approver's answer": ({ before: { turn: earlier }, after: { answered, turn } }) =>
    turn?.verification?.allowed === undefined ||
    (earlier?.id === turn.id && earlier.verification?.allowed === turn.verification.allowed) ||
    answered.some((each) => each.requestId === turn.verification?.requestId && each.behavior === "allow"),
  "commands run at most as often as the verification says": ({ after: { turn } }) => {
    const { of, runs } = turn?.verification ?? { of: 0, runs: 0 };
    return runs === 0 || runs <= of;
  },
  "commands that count no longer are stopped": (the) => {
    const { before, effects, input } = the;
    const { number, phase } = before.turn?.settling ?? {};
    const goesOn = the.after.turn?.id === before.turn?.id && the.after.turn?.settling?.number === number;
    const isOver = input.type === "verified" || isTakenOver(the);
    return phase !== "verify" || goesOn || isOver || ofType(effects, "stop-checks").length === 1;
  },
  "a request for commands is open only while the turn waits for its answer": ({ after: { requests, turn } }) =>
    requests.every(({ toolName }) => toolName !== VERIFICATION_TOOL) || turn?.settling?.phase === "ask",
  "a turn has at most one receipt, which comes last": ({ after, before, events }) => {
    const [receipt, ...others] = count(events, ["turn.receipt"]);
    if (!receipt) return true;
    const [ended] = count(events, ["turn.ended"]);
    const id = before.lastEventId + events.indexOf(receipt) + 1;
    return others.length === 0 && ended?.data.receiptEventId === id && after.lastReceiptEventId === id;
  },
};

function entersPhase({ before: { turn: earlier }, after: { turn } }: Case): boolean {
  if (!turn?.settling) return false;
  return earlier?.id !== turn.id || earlier.settling?.number !== turn.settling.number;
}

/** True if the session has another owner from here on. */
function isTakenOver({ input }: Case): boolean {
  return input.type === "recovered" || input.type === "attached";
}
