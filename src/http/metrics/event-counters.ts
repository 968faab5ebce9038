import type { StoredEvent, TurnEnded } from "../../domain/event.ts";
import type { SessionState } from "../../domain/session.ts";
import { TOKEN_KINDS, usageOf } from "../../domain/usage.ts";
import type { Append } from "../../engine/ports.ts";
import { NO_CATEGORY, type Instruments } from "./instruments.ts";

/** What the log says, as counters. */

type Event = Append["events"][number];
type Answered = Extract<StoredEvent, { type: "permission.answered" | "question.answered" }>["data"];

export class EventCounters {
  readonly #to: Instruments;
  /** When each open request was asked, ms since the epoch, by session: as the state said after its last change. */
  readonly #asked = new Map<string, ReadonlyMap<string, number>>();

  constructor(to: Instruments) {
    this.#to = to;
  }

  add(sessionId: string, { at, events, state }: Append): void {
    const asked = new Map(this.#asked.get(sessionId));
    for (const event of events) this.#count(event, at, asked);
    this.#remember(sessionId, state);
  }

  #remember(sessionId: string, { requests }: SessionState): void {
    if (requests.length === 0) this.#asked.delete(sessionId);
    else this.#asked.set(sessionId, new Map(requests.map(({ createdAt, requestId }) => [requestId, createdAt])));
  }

  #count(event: Event, at: number, asked: Map<string, number>): void {
    const { data, type } = event;
    if (type === "turn.ended") this.#countTurn(data);
    if (type === "message") this.#countResult(event);
    if (type === "permission.asked" || type === "question.asked") asked.set(data.requestId, at);
    if (type === "permission.answered" || type === "question.answered") {
      const kind = type === "permission.answered" ? "permission" : "question";
      this.#countAnswer(kind, data, at - (asked.get(data.requestId) ?? at));
    }
    if (type === "notice" && data.kind === "retry") this.#to.apiRetries.inc();
    if (type === "process.exited") this.#to.exits.inc({ expected: String(data.expected) });
  }

  #countTurn({ category, costUsd, durationMs, outcome }: TurnEnded): void {
    const failure = outcome === "failed" ? (category ?? "unknown") : NO_CATEGORY;
    this.#to.turns.inc({ outcome, category: failure });
    this.#to.turnSeconds.observe({ outcome }, durationMs / 1000);
    // A counter that is told to go down throws.
    this.#to.cost.inc(Math.max(costUsd, 0));
  }

  #countResult(event: Event): void {
    const usage = usageOf(event);
    if (!usage) return;
    for (const kind of TOKEN_KINDS) this.#to.tokens.inc({ kind }, usage.tokens[kind]);
  }

  #countAnswer(kind: "permission" | "question", { behavior: decision, by }: Answered, waitMs: number): void {
    this.#to.waits.observe({ kind, decision, by }, Math.max(waitMs, 0) / 1000);
  }
}
