import type { Refusal } from "../domain/error.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Place } from "../domain/place.ts";
import type { Principal } from "../domain/principal.ts";
import type { SessionState } from "../domain/session.ts";
import type { Gate } from "./policy/gate.ts";
import type { Policy } from "./policy/policy.ts";
import type { Happening } from "./step.ts";
import type { AgentRuntime, Clock, Lease, Logger, SessionBackend, SessionRecord } from "./ports.ts";
import type { Placement } from "./placement.ts";
import type { ProcessLimiter } from "./process-limiter.ts";

/** Dependencies of an actor: its node (`ActorContext`) and its session (`ActorSession`). */

export interface ActorContext {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly limiter: Pick<ProcessLimiter, "acquireSlot" | "hasFreeSlot">;
  readonly placement: Pick<Placement, "isDrained" | "passesOn" | "release" | "whyAway">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves with the reason why the session may get no process here with this environment record, or `undefined`. */
  readonly objectionToStart: (record: SessionRecord, environmentId: string) => Promise<Refusal | undefined>;
  /** Removes secrets from an event before the event is stored. Effects act on the original. */
  readonly mask: (event: SessionEvent, sessionId: string) => SessionEvent;
}

export interface ActorSession {
  readonly lease: Lease;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly place: Place | undefined;
  readonly state: SessionState;
  /** First input if a former owner has left work. */
  readonly takenOver: Extract<Happening, { type: "attached" | "recovered" }> | undefined;
  readonly policy: Policy;
  /** Gate of this server. A command may have passed the gate of another server, whose operator allows more. */
  readonly gate: Gate;
}

/** Terms on which this node goes on with a session. */
export interface TakeoverTerms {
  readonly record: SessionRecord;
  /** True if a turn without a recorded process may be started here. */
  readonly mayStart: boolean;
  /** Environment record for the start. */
  readonly environmentId?: string;
  /** Reason why a lost turn is not started again, a sentence for people. */
  readonly why?: string;
}

/** True if masking changes `input`, so that the log cannot restore it. */
export function isMasked({ mask }: Pick<ActorContext, "mask">, sessionId: string, input: JsonObject): boolean {
  const event: SessionEvent = { type: "message", data: { message: input } };
  return JSON.stringify(mask(event, sessionId)) !== JSON.stringify(event);
}
