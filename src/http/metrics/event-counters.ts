import { type ByEventType, type DataOf, decideBy } from "../../domain/event-table.ts";
import type { TurnEnded } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SessionState } from "../../domain/session.ts";
import { roundUsd, TOKEN_KINDS, usageOf } from "../../domain/usage.ts";
import type { Append } from "../../engine/ports.ts";
import { NO_CATEGORY, type Instruments } from "./instruments.ts";

type Answered = DataOf<"permission.answered">;

export class EventCounters {
  readonly #to: Instruments;
  /** Creation times of open requests, ms since the epoch, by session; from the state after the last change. */
  readonly #asked = new Map<string, ReadonlyMap<string, number>>();
  #costUsd = 0;

  constructor(to: Instruments) {
    this.#to = to;
  }

  add(sessionId: string, { at, events, state }: Append): void {
    const asked = new Map(this.#asked.get(sessionId));
    for (const event of events) decideBy(this.#counts, event, at, asked);
    this.#remember(sessionId, state);
  }

  #remember(sessionId: string, { requests }: SessionState): void {
    if (requests.length === 0) this.#asked.delete(sessionId);
    else this.#asked.set(sessionId, new Map(requests.map(({ createdAt, requestId }) => [requestId, createdAt])));
  }

  /** Counts events by type; `asked` holds the creation times of the session's open requests. */
  readonly #counts: ByEventType<void, [at: number, asked: Map<string, number>]> = {
    "session.opened": () => undefined,
    "session.configured": () => undefined,
    "session.closed": () => undefined,
    "prompt.queued": () => undefined,
    "prompt.steered": () => undefined,
    "prompt.dropped": () => undefined,
    "turn.started": () => undefined,
    "turn.baseline": () => undefined,
    "verification.started": () => undefined,
    "verification.ended": () => undefined,
    "turn.receipt": () => undefined,
    "turn.ended": (data) => this.#countTurn(data),
    message: ({ message }) => this.#countResult(message),
    "permission.asked": ({ requestId }, at, asked) => void asked.set(requestId, at),
    "permission.answered": (data, at, asked) => this.#countAnswer("permission", data, waitedMs(data, at, asked)),
    "question.asked": ({ requestId }, at, asked) => void asked.set(requestId, at),
    "question.answered": (data, at, asked) => this.#countAnswer("question", data, waitedMs(data, at, asked)),
    "request.passed": () => undefined,
    "background.changed": () => undefined,
    notice: ({ kind }) => {
      if (kind === "retry") this.#to.apiRetries.inc();
    },
    "process.started": () => undefined,
    "process.exited": ({ expected }) => this.#to.exits.inc({ expected: String(expected) }),
  };

  #countTurn({ category, costUsd, durationMs, outcome }: TurnEnded): void {
    const failure = outcome === "failed" ? (category ?? "unknown") : NO_CATEGORY;
    this.#to.turns.inc({ outcome, category: failure });
    this.#to.turnSeconds.observe({ outcome }, durationMs / 1000);
    // Sets the sum anew, because `inc` throws for a negative cost, and sums of fractions show rounding errors.
    this.#costUsd = roundUsd(this.#costUsd + Math.max(costUsd, 0));
    this.#to.cost.reset();
    this.#to.cost.inc(this.#costUsd);
  }

  #countResult(message: JsonObject): void {
    const usage = usageOf({ type: "message", data: { message } });
    if (!usage) return;
    for (const kind of TOKEN_KINDS) this.#to.tokens.inc({ kind }, usage.tokens[kind]);
  }

  #countAnswer(kind: "permission" | "question", { behavior: decision, by }: Answered, waitMs: number): void {
    this.#to.waits.observe({ kind, decision, by }, Math.max(waitMs, 0) / 1000);
  }
}

function waitedMs({ requestId }: Answered, at: number, asked: ReadonlyMap<string, number>): number {
  return at - (asked.get(requestId) ?? at);
}
