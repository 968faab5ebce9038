import type { Turn } from "../../domain/running-turn.ts";
import { settleAllRequests } from "./requests/requests.ts";
import { emit, type Draft, type Happening } from "./draft.ts";
import { endTurn } from "./turn.ts";
import type { Ending } from "./endings.ts";

/** Steps at the end of a turn: each begins an effect, whose outcome comes back as an input with the number of the phase. */

type Phase = NonNullable<Turn["settling"]>["phase"];

/** Begins a phase, and returns its number. */
export function enterPhase(turn: Turn, phase: Phase, ending: Ending): number {
  const number = (turn.phases ?? 0) + 1;
  turn.phases = number;
  turn.settling = { phase, number, forMs: 0, ending };
  return number;
}

const PHASE_OF = { judged: "judge", verified: "verify", looked: "look" } as const satisfies Record<string, Phase>;

/** Returns the turn whose present phase an outcome belongs to, and its ending; `undefined` for the outcome of an earlier phase. */
export function turnInPhase(
  { state: { turn } }: Draft,
  { number, turnId, type }: Extract<Happening, { type: keyof typeof PHASE_OF }>,
): { readonly turn: Turn; readonly ending: Ending } | undefined {
  const { ending, number: present, phase } = turn?.settling ?? {};
  const isPresent = turn?.id === turnId && present === number && phase === PHASE_OF[type];
  return isPresent && ending ? { turn, ending } : undefined;
}

/** Notes the state of the folders before the turn, unless the turn starts from an earlier state. */
export function onBaseline(draft: Draft, { before, between, turnId }: Extract<Happening, { type: "baseline" }>): void {
  const { turn } = draft.state;
  if (turn?.id !== turnId || turn.baselineEventId !== undefined) return;
  const data = { turnId, before, ...(between !== undefined && { between }) };
  turn.baselineEventId = emit(draft, { type: "turn.baseline", data });
}

/** Has the folders compared, then ends the turn with `ending`. Ends the turn at once on a server without receipts. */
export function lookAndEnd(draft: Draft, turn: Turn, ending: Ending): void {
  if (!draft.policy.receipts || turn.eventId === undefined) return endTurn(draft, turn, ending);
  settleAllRequests(draft, "withdrawn");
  draft.effects.push({ type: "look", turnId: turn.id, number: enterPhase(turn, "look", ending) });
}

export function onLooked(draft: Draft, input: Extract<Happening, { type: "looked" }>): void {
  const found = turnInPhase(draft, input);
  if (!found) return;
  const { seen, turnId } = input;
  if (seen) found.turn.receiptEventId = emit(draft, { type: "turn.receipt", data: { turnId, ...seen } });
  endTurn(draft, found.turn, found.ending);
}
