import { EVENT_TYPES, type EventType, type StoredEvent, type TurnEnded } from "../domain/event.ts";
import { usageOf } from "../domain/usage.ts";
import type { SessionLog, SessionRecord } from "../engine/ports.ts";
import type { FactSink } from "./facts.ts";

/**
 * Reads the facts of a session from its log. Most events are messages, which are long and count only if they are results. So
 * messages are skipped, and results are found from the ends of turns.
 */

/** Maximum number of events held at a time. */
const PAGE = 200;

/** Types counted, or needed for counting. */
const IS_READ: Readonly<Record<EventType, boolean>> = {
  "session.opened": false,
  "session.configured": false,
  "session.closed": false,
  "prompt.queued": true,
  "prompt.steered": false,
  "prompt.dropped": false,
  "turn.started": true,
  "turn.baseline": false,
  "verification.started": false,
  "verification.ended": false,
  "turn.receipt": false,
  "turn.ended": true,
  // Only results count; `readResults` finds them from the ends of turns.
  message: false,
  "permission.asked": true,
  "permission.answered": true,
  "question.asked": true,
  "question.answered": true,
  "request.passed": false,
  "background.changed": false,
  notice: true,
  "process.started": false,
  "process.exited": true,
};
const TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => IS_READ[type]);

export type Log = Pick<SessionLog, "read">;

/** Reports the facts of a session from `since` (ms since the epoch) to `sink`. */
export async function readFacts(log: Log, record: SessionRecord, since: number, sink: FactSink): Promise<void> {
  const reading = new FactReader(sink, since);
  for await (const event of readCountedEvents(log, record)) reading.take(event);
}

/** Yields the events to count, in order. Results come before the end of their turn. */
async function* readCountedEvents(log: Log, { id, state }: SessionRecord): AsyncGenerator<StoredEvent> {
  let next = 1;
  let turnStart = 1;
  for (;;) {
    const page = await log.read(id, next, PAGE, TYPES);
    for (const event of page) {
      if (event.id > state.lastEventId) return;
      if (event.type === "turn.started") turnStart = event.id;
      if (event.type === "turn.ended")
        yield* readResults(log, id, { ended: event.data, from: turnStart, to: event.id });
      yield event;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    next = last.id + 1;
  }
}

interface TurnRange {
  readonly ended: TurnEnded;
  readonly from: number;
  readonly to: number;
}

/**
 * Yields the results of a turn. `turn.ended` names a single result; if the result has fewer model calls than the turn, searches
 * for further results.
 */
async function* readResults(log: Log, id: string, { ended, from, to }: TurnRange): AsyncGenerator<StoredEvent> {
  if (ended.resultEventId === undefined) return;
  const [named] = await log.read(id, ended.resultEventId, 1);
  if (named?.id !== ended.resultEventId) return;
  if ((usageOf(named)?.modelCalls ?? 0) >= ended.numTurns) {
    yield named;
    return;
  }
  for (let next = from; next < to;) {
    const page = await log.read(id, next, PAGE, ["message"]);
    const inTurn = page.filter((event) => event.id < to);
    yield* inTurn.filter((event) => usageOf(event) !== undefined);
    next = inTurn.length < PAGE ? to : (page.at(-1)?.id ?? to) + 1;
  }
}

class FactReader {
  readonly #sink: FactSink;
  readonly #since: number;
  /** Time at which each open request was asked. */
  readonly #asked = new Map<string, number>();
  /** Start of the current wait, start of the running turn, and earlier waits in the running turn. All in ms. */
  #waitingSince = 0;
  #turnSince = 0;
  #turnWaitedMs = 0;
  readonly #via = new Map<string, string>();
  #tool = UNKNOWN;
  #costByModel: Readonly<Record<string, number>> = {};
  /** Cost by model in the running turn, as far as Claude Code reports it, USD. */
  #spent = new Map<string, number>();

  constructor(sink: FactSink, since: number) {
    this.#sink = sink;
    this.#since = since;
  }

  take(event: StoredEvent): void {
    const { at, data, type } = event;
    if (type === "prompt.queued" && data.via !== undefined) this.#via.set(data.promptId, data.via);
    if (type === "turn.started") this.#onTurnStarted(event);
    if (type === "permission.asked" || type === "question.asked") this.#onAsked(data.requestId, at);
    if (type === "permission.answered" || type === "question.answered") this.#onAnswered(event);
    if (type === "message") this.#onResult(event);
    if (type === "turn.ended") this.#onTurnEnded(event);
    if (!this.#counts(event)) return;
    if (type === "notice" && data.kind === "retry") this.#sink.apiRetry(at);
    if (type === "process.exited" && !data.expected) this.#sink.crash(at);
  }

  #counts({ at }: StoredEvent): boolean {
    return at >= this.#since;
  }

  #toolOf({ origin, promptIds }: Extract<StoredEvent, { type: "turn.started" }>["data"]): string {
    if (origin === "self") return ITSELF;
    return promptIds.map((promptId) => this.#via.get(promptId)).find((via) => via !== undefined) ?? UNKNOWN;
  }

  #onTurnStarted({ at, data }: Extract<StoredEvent, { type: "turn.started" }>): void {
    this.#tool = this.#toolOf(data);
    this.#turnSince = at;
    this.#turnWaitedMs = 0;
  }

  /** Adds a wait to the running turn. A request may be open since before the turn, and stay open after the turn. */
  #noteWait(at: number): void {
    this.#turnWaitedMs += Math.max(0, at - Math.max(this.#waitingSince, this.#turnSince));
  }

  #onAsked(requestId: string, at: number): void {
    if (this.#asked.size === 0) this.#waitingSince = at;
    this.#asked.set(requestId, at);
  }

  #onAnswered(event: Extract<StoredEvent, { type: "permission.answered" | "question.answered" }>): void {
    const { at } = event;
    const { behavior: decision, by, requestId } = event.data;
    const askedAt = this.#asked.get(requestId);
    this.#asked.delete(requestId);
    if (askedAt !== undefined && this.#asked.size === 0) this.#noteWait(at);
    if (!this.#counts(event)) return;
    const kind = event.type === "question.answered" ? "question" : "permission";
    this.#sink.answer({ at, kind, decision, by, waitMs: askedAt === undefined ? undefined : at - askedAt });
    if (askedAt !== undefined && this.#asked.size === 0) this.#sink.waited({ at, ms: at - this.#waitingSince });
  }

  #onResult(event: StoredEvent): void {
    const usage = usageOf(event);
    if (!usage) return;
    if (this.#counts(event)) this.#sink.result({ at: event.at, usage });
    for (const [model, total] of Object.entries(usage.costByModel)) {
      const before = this.#costByModel[model] ?? 0;
      // A smaller `total` means that Claude Code has restarted counting.
      const more = total >= before ? total - before : total;
      this.#spent.set(model, (this.#spent.get(model) ?? 0) + more);
    }
    this.#costByModel = usage.costByModel;
  }

  #onTurnEnded(event: Extract<StoredEvent, { type: "turn.ended" }>): void {
    const { at, data: ended } = event;
    const costByModel = splitByModel(ended.costUsd, this.#spent);
    this.#spent = new Map();
    if (this.#asked.size > 0) this.#noteWait(at);
    const waitedMs = this.#turnWaitedMs;
    if (this.#counts(event)) this.#sink.turn({ at, ended, tool: this.#tool, waitedMs, costByModel });
    this.#tool = UNKNOWN;
  }
}

/** Tool name for a turn begun by Claude Code itself, after the end of a background task. */
const ITSELF = "(itself)";
const UNKNOWN = "(unknown)";

/**
 * Splits the cost of a turn by model. Claude Code reports cost by model only for the whole session, including costs inherited
 * by a fork and costs not saved by a killed process. So the reported costs give the shares, and `costUsd` gives the sum.
 */
function splitByModel(costUsd: number, spent: ReadonlyMap<string, number>): Map<string, number> {
  const sum = [...spent.values()].reduce((total, each) => total + each, 0);
  if (sum === 0) return new Map(costUsd === 0 ? [] : [[UNKNOWN, costUsd]]);
  return new Map([...spent].map(([model, each]) => [model, (costUsd * each) / sum]));
}
