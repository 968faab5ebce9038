import type { SessionEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import type { SessionState } from "../domain/session.ts";
import type { Gate } from "./policy/gate.ts";
import type { Policy } from "./policy/policy.ts";
import type { Happening } from "./step.ts";
import type { AgentRuntime, Clock, Lease, Logger, SessionBackend, SessionRecord } from "./ports.ts";
import type { ProcessLimiter } from "./process-limiter.ts";

/** Dependencies of an actor: its node (`ActorContext`) and its session (`ActorSession`). */

export interface ActorContext {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly limiter: Pick<ProcessLimiter, "acquireSlot" | "hasFreeSlot">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves with the reason why the session may get no process here with this environment record, or `undefined`. */
  readonly objectionToStart: (record: SessionRecord, environmentId: string) => Promise<string | undefined>;
  /** Removes secrets from an event before the event is stored. Effects act on the original. */
  readonly mask: (event: SessionEvent, sessionId: string) => SessionEvent;
}

export interface ActorSession {
  readonly lease: Lease;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly state: SessionState;
  /** First input if a former owner has left work. */
  readonly takenOver: Extract<Happening, { type: "attached" | "recovered" }>;
  readonly policy: Policy;
  /** Gate of this server. A command may have passed the gate of another server, whose operator allows more. */
  readonly gate: Gate;
}
