import type { SessionEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import type { SessionState } from "../domain/session.ts";
import type { Gate } from "./policy/gate.ts";
import type { Policy } from "./policy/policy.ts";
import type { Happening } from "./step.ts";
import type { AgentRuntime, Clock, Lease, Logger, SessionBackend } from "./ports.ts";
import type { ProcessLimiter } from "./process-limiter.ts";

/** What an actor has from its node, and of its session. */

export interface ActorContext {
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly limiter: Pick<ProcessLimiter, "acquireSlot" | "hasFreeSlot">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes secrets out of an event before it is stored; what is acted upon is the event as it came. */
  readonly mask: (event: SessionEvent, sessionId: string) => SessionEvent;
}

export interface ActorSession {
  readonly lease: Lease;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly state: SessionState;
  /** How this server goes on with what a former owner has left. */
  readonly takenOver: Extract<Happening, { type: "attached" | "recovered" }>;
  readonly policy: Policy;
  /** Of this server: its command was let through by another one, whose operator may allow more. */
  readonly gate: Gate;
}
