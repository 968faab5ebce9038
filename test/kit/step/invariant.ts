import type { EventType, SessionEvent } from "../../../src/domain/event.ts";
import type { SessionState } from "../../../src/domain/session.ts";
import type { Policy } from "../../../src/engine/policy/policy.ts";
import type { LedgerChange } from "../../../src/engine/ports.ts";
import type { Effect, Input, Known } from "../../../src/engine/step.ts";

/** Step that invariants judge: its input and its outcome. */
export interface Case {
  readonly before: SessionState;
  readonly after: SessionState;
  readonly input: Input;
  readonly policy: Policy;
  readonly known: Known;
  readonly events: readonly SessionEvent[];
  readonly effects: readonly Effect[];
  readonly ledger: readonly LedgerChange[];
}

/** True if the invariant holds. */
export type Invariant = (the: Case) => boolean;

export function ofType<T extends Effect["type"]>(effects: readonly Effect[], type: T): Extract<Effect, { type: T }>[] {
  return effects.filter((effect): effect is Extract<Effect, { type: T }> => effect.type === type);
}

export function count<T extends EventType>(events: readonly SessionEvent[], types: readonly T[]) {
  return events.filter((event): event is Extract<SessionEvent, { type: T }> =>
    types.some((type) => type === event.type),
  );
}
