import { randomUUID } from "node:crypto";
import type { NoticeType } from "../config/notify/settings.ts";
import type { SessionEvent, TurnEnded } from "../domain/event.ts";
import { rungOf, type Ask, type OpenAsk } from "../domain/permission.ts";
import type { Engine } from "../engine/api.ts";
import type { Append, Logger, SessionBackend, SessionRecord } from "../engine/ports.ts";
import type { Receiver } from "./attempt.ts";
import { Outbox, type Letter, type Outcome } from "./outbox.ts";
import { payloadOf, type Mask, type Matter, type Payload } from "./payload.ts";

/**
 * Follows what this server writes to the logs of its sessions, and tells the operator's webhook of it. The receiver is the
 * operator's choice alone; no caller can name one. Where the webhook is on the ladder a request is sent when it is its turn,
 * and goes on to the next when the receiver cannot be reached.
 */

export interface NotifierOptions {
  readonly receiver: Receiver;
  readonly types: ReadonlySet<NoticeType>;
  readonly limits: { readonly attempts: number; readonly retryMs: number };
  readonly version: string;
  readonly mask: Mask;
  readonly store: Pick<SessionBackend, "log" | "rows">;
  /** Where the webhook is on the ladder. */
  readonly rung: WebhookRung | undefined;
  /** What became of each. */
  readonly onSettled: (settled: Settled) => void;
  readonly log: Pick<Logger, "debug" | "error" | "warn">;
}

export interface WebhookRung {
  readonly engine: () => Pick<Engine, "delivered" | "pass">;
  /** Where a request is answered. */
  readonly answerUrl: (sessionId: string, requestId: string) => string;
}

export interface Settled {
  readonly type: NoticeType;
  readonly principal: string;
  readonly sessionId: string;
  readonly requestId?: string;
  readonly outcome: Outcome;
}

export interface Notifier {
  /** Told of each change once it is durable. Never throws, and never waits. */
  onAppended(sessionId: string, change: Append): void;
  /** What waits has one more attempt each, and all together `graceMs`; then it is dropped. */
  close(graceMs: number): Promise<void>;
}

/** So many wait at most, and so many are under way at a time. */
const MOST = 1_000;
const ABREAST = 16;

/** Why Claude Code, or this server, ended a turn that has spent its budget. */
const BUDGET = "error_max_budget_usd";

interface Notice {
  readonly type: NoticeType;
  readonly sessionId: string;
  readonly at: number;
  readonly matter: Matter;
}

export function createNotifier(options: NotifierOptions): Notifier {
  return new Following(options);
}

class Following implements Notifier {
  readonly #options: NotifierOptions;
  readonly #outbox: Outbox;
  /** What is open in each session, as the state said after its last change. */
  readonly #open = new Map<string, readonly OpenAsk[]>();

  constructor(options: NotifierOptions) {
    const { limits, receiver } = options;
    this.#options = options;
    this.#outbox = new Outbox({ ...limits, receiver, most: MOST, abreast: ABREAST });
  }

  onAppended(sessionId: string, change: Append): void {
    try {
      this.#remember(sessionId, change);
      if (change.events.some(isStep)) this.#outbox.sweep();
      for (const event of change.events) this.#tell(sessionId, event, change);
    } catch (error) {
      this.#options.log.error("the webhook could not be told of an event", { sessionId, error: String(error) });
    }
  }

  async close(graceMs: number): Promise<void> {
    return this.#outbox.close(graceMs);
  }

  #remember(sessionId: string, { state: { asks } }: Append): void {
    if (asks.length === 0) this.#open.delete(sessionId);
    else this.#open.set(sessionId, asks);
  }

  #tell(sessionId: string, { data, type }: Append["events"][number], { at }: Append): void {
    if (type === "permission.asked" || type === "question.asked") this.#tellAsked(sessionId, { ask: data, type, at });
    if (type === "request.passed" && data.to === "webhook") this.#tellPassed(sessionId, data.requestId, at);
    if (type === "turn.ended") this.#tellEnded(sessionId, data, at);
  }

  #tellAsked(sessionId: string, { ask, at, type }: { ask: Ask; type: NoticeType; at: number }): void {
    const open = this.#openAsk(sessionId, ask.requestId);
    // Answered as soon as it was asked, by a rule for instance, it waits for nobody.
    if (!open) return;
    const { rung, types } = this.#options;
    if (rung ? rungOf(open) !== "webhook" : !types.has(type)) return;
    const answerUrl = rung?.answerUrl(sessionId, ask.requestId);
    this.#send({ type, sessionId, at, matter: { ask, open, ...(answerUrl !== undefined && { answerUrl }) } });
  }

  /** It has come to the webhook from somebody before it: what is asked stands in the log. */
  #tellPassed(sessionId: string, requestId: string, at: number): void {
    const { log, store } = this.#options;
    const open = this.#openAsk(sessionId, requestId);
    if (!open) return;
    const tell = async () => {
      const [event] = await store.log.read(sessionId, open.eventId, 1);
      if (event?.type !== "permission.asked" && event?.type !== "question.asked") return;
      this.#tellAsked(sessionId, { ask: event.data, type: event.type, at });
    };
    tell().catch((error: unknown) => {
      log.error("the webhook could not be told of a request", { sessionId, requestId, error: String(error) });
    });
  }

  #tellEnded(sessionId: string, ended: TurnEnded, at: number): void {
    for (const type of ["turn.ended", "budget.reached"] as const) {
      if (type === "budget.reached" && ended.errorSubtype !== BUDGET) continue;
      if (this.#options.types.has(type)) this.#send({ type, sessionId, at, matter: { ended } });
    }
  }

  #openAsk(sessionId: string, requestId: string): OpenAsk | undefined {
    return this.#open.get(sessionId)?.find((ask) => ask.requestId === requestId);
  }

  #send(notice: Notice): void {
    const { matter, sessionId } = notice;
    const { log, rung, store } = this.#options;
    const id = `msg_${randomUUID()}`;
    // Read now: a session may be deleted, or its store closed, before the last attempt.
    const record = store.rows.get(sessionId);
    record.catch(() => undefined);
    const payload = record.then((known) => this.#payload(id, notice, known));
    payload.catch(() => undefined);
    const isAwaited = rung !== undefined && "ask" in matter;
    const letter: Letter = {
      id,
      body: async () => JSON.stringify((await payload).payload),
      isWanted: () => "ended" in matter || this.#isWaiting(sessionId, matter.ask),
      until: () => (isAwaited ? this.#rungEnd(sessionId, matter.ask) : Number.POSITIVE_INFINITY),
      failed: (attempts, answer, waitMs) =>
        log.debug("webhook: to be tried again", { delivery: id, attempts, answer, waitMs }),
      settled: (outcome, attempts, answer) => {
        const result = { id, outcome, attempts, answer };
        void this.#settled(notice, record, result);
        if (isAwaited) void this.#report(notice, matter.ask.requestId, { outcome, record, payload });
      },
    };
    this.#outbox.add(letter);
  }

  /** Whether it still waits for an answer; on the ladder, for that of the webhook. */
  #isWaiting(sessionId: string, { requestId }: Ask): boolean {
    const open = this.#openAsk(sessionId, requestId);
    return open !== undefined && (!this.#options.rung || rungOf(open) === "webhook");
  }

  #rungEnd(sessionId: string, { requestId }: Ask): number {
    const open = this.#openAsk(sessionId, requestId);
    return open?.rungEndsAt ?? open?.expiresAt ?? 0;
  }

  /** The ladder learns whether the receiver has it, or that the next one is to be asked. */
  async #report(
    { sessionId }: Notice,
    requestId: string,
    {
      outcome,
      payload,
      record,
    }: { outcome: Outcome; record: Promise<SessionRecord | undefined>; payload: Promise<Payload> },
  ): Promise<void> {
    const engine = this.#options.rung?.engine();
    if (!engine || outcome === "obsolete") return;
    try {
      const principal = (await record)?.principal;
      if (principal === undefined) return;
      if (outcome === "delivered") {
        const { whole } = await payload;
        await engine.delivered(principal, sessionId, [{ requestId, whole, rung: "webhook" }]);
      } else await engine.pass(principal, sessionId, { requestId, from: "webhook", why: "unreachable" });
    } catch (error) {
      // Its time runs out all the same.
      this.#options.log.warn("webhook: the session did not learn of it", {
        sessionId,
        requestId,
        error: String(error),
      });
    }
  }

  #payload(id: string, { at, matter, sessionId, type }: Notice, record: SessionRecord | undefined): Payload {
    if (!record) throw new Error("the session was deleted");
    const { principal, spec } = record;
    const title = record.title ?? spec.title;
    const session = { id: sessionId, principal, ...(title !== undefined && { title }), cwd: spec.cwd };
    const { mask, version } = this.#options;
    return payloadOf({ id, type, at, version, session }, matter, mask);
  }

  async #settled(
    { matter, sessionId, type }: Notice,
    record: Promise<SessionRecord | undefined>,
    { id, ...result }: { id: string; outcome: Outcome; attempts: number; answer: string },
  ): Promise<void> {
    const { log, onSettled } = this.#options;
    const about = { type, sessionId, ...("ask" in matter && { requestId: matter.ask.requestId }) };
    const isFine = result.outcome === "delivered" || result.outcome === "obsolete";
    log[isFine ? "debug" : "warn"]("webhook", { delivery: id, ...about, ...result });
    const known = await record.catch(() => undefined);
    onSettled({ ...about, principal: known?.principal ?? "", outcome: result.outcome });
  }
}

/** A request was answered, or is with somebody else now. */
function isStep({ type }: SessionEvent): boolean {
  return type === "permission.answered" || type === "question.answered" || type === "request.passed";
}
