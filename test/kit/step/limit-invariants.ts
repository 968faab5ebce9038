import { isDeepStrictEqual } from "node:util";
import { BudgetDay } from "../../../src/domain/budget.ts";
import { nextDeadline } from "../../../src/engine/step.ts";
import { type Invariant, ofType } from "./invariant.ts";

/** Invariants of turns at limits, and of processes in general, which such turns may lack. */

export const LIMIT_INVARIANTS: Readonly<Record<string, Invariant>> = {
  "a waiting turn gives Claude Code nothing": ({ after: { turn, waiting }, effects }) =>
    !turn || !waiting || [...ofType(effects, "push"), ...ofType(effects, "send-again")].length === 0,
  "a refused request is sent again by the stored decision, and by another owner only under the same id": (the) => {
    const { after, before, effects, input } = the;
    const [again, ...others] = ofType(effects, "send-again");
    if (!again) return true;
    const isNewOwner = input.type === "attached" || input.type === "recovered";
    const isDecided = after.turn?.goneOn === again.id && after.turn.awaiting.includes(again.id);
    return others.length === 0 && isDecided && (before.turn?.goneOn === again.id) === isNewOwner;
  },
  "a turn that has not been answered since is never sent again": ({ after: { refused, turn }, before }) =>
    turn !== null || refused === undefined || before.turn === null || before.turn.goneOn === undefined,
  "a reservation is given back with the end of its turn": ({ after, before: { turn }, ledger }) => {
    if (!turn?.reserved || after.turn?.id === turn.id) return true;
    const changed = new Map(ledger.map(({ key, value }) => [key, BudgetDay.safeParse(value).data]));
    return turn.reserved.every(({ key }) => changed.has(key) && changed.get(key)?.reserved[turn.id] === undefined);
  },
  "a turn has a process, which is ending only if the turn waits for its exit, unless it waits or its work is over": ({
    after: { process, turn, waiting },
  }) =>
    turn === null ||
    waiting !== undefined ||
    turn.settling !== undefined ||
    turn.origin === "verify" ||
    (process.phase !== "none" && (!turn.pending || process.phase === "ending")),
  "a running turn has a deadline": ({ after, policy }) =>
    after.turn === null || after.turn.stopping?.killed === true || nextDeadline(after, policy) !== undefined,
  "a node that leaves a session stops its process, leaves only a waiting turn, and starts nothing": ({
    after,
    before,
    effects,
    input,
  }) =>
    input.type !== "shutdown" ||
    ((after.turn === null || isDeepStrictEqual(after.waiting?.since, before.waiting?.since)) &&
      (after.process.phase === "none" || after.process.phase === "ending") &&
      ofType(effects, "start").length === 0 &&
      ofType(effects, "stop").length === (after.process.phase === "none" ? 0 : 1)),
};
