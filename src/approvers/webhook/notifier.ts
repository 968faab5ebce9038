import { constants } from "../../config/constants.ts";
import { randomUUID } from "node:crypto";
import { type ByEventType, type DataOf, decideBy } from "../../domain/event-table.ts";
import type { TurnEnded } from "../../domain/event.ts";
import type { OpenRequest, PermissionRequest } from "../../domain/permission.ts";
import type { Append, Logger, SessionBackend } from "../../engine/ports.ts";
import type {
  ApproverPort,
  AskedEvent,
  Offered,
  OfferedSession,
  Reception,
  ApproverParts,
  StartedApprover,
} from "../approver.ts";
import { offeredSession } from "../offers.ts";
import { DeliveryQueue, type Delivery, type NamedReceiver, type Outcome } from "./queue.ts";
import { buildPayload, type Mask, type NoticeSubject, type Payload } from "./payload.ts";
import { notifyConfigOf, type NoticeType } from "./settings.ts";

/**
 * Notifies the operator's webhook of events that this server writes to session logs. Only the operator can name a receiver. If
 * the webhook is on the approval chain, requests are sent only when offered.
 */

interface NotifierOptions {
  readonly receiver: NamedReceiver;
  readonly limits: { readonly attempts: number; readonly retryMs: number };
  readonly version: string;
  readonly mask: Mask;
  readonly store: Pick<SessionBackend, "rows">;
  /** Returns the URL for answering a request; `undefined` if the webhook is only notified. */
  readonly answerUrl: ((sessionId: string, requestId: string) => string) | undefined;
  /** Called with the outcome of each delivery. */
  readonly onSettled: (settled: SettledDelivery) => void;
  readonly log: Pick<Logger, "debug" | "error" | "warn">;
}

interface SettledDelivery {
  readonly type: NoticeType;
  readonly principal: string;
  readonly sessionId: string;
  readonly requestId?: string;
  readonly outcome: Outcome;
}

/** Maximum number of waiting deliveries, and of concurrent deliveries. */
const MAX_QUEUED = 1_000;
const MAX_CONCURRENT = 16;

/** `errorSubtype` of a turn that has exceeded its budget, set by Claude Code or by this server. */
const BUDGET_EXCEEDED = "error_max_budget_usd";

interface Notice {
  readonly type: NoticeType;
  readonly sessionId: string;
  readonly at: number;
  readonly matter: NoticeSubject;
  /** Resolves to `undefined` if the session was deleted in the meantime. */
  readonly session: Promise<OfferedSession | undefined>;
  /** Attempts after this time are useless, ms since the epoch. */
  readonly until: () => number;
}

/** The change of a session that contains an event. */
interface SessionChange {
  readonly sessionId: string;
  readonly at: number;
  readonly requests: readonly OpenRequest[];
}

interface SentNotice {
  readonly outcome: Outcome;
  readonly payload: Promise<Payload>;
}

class Notifier implements ApproverPort {
  readonly #options: NotifierOptions;
  readonly #queue: DeliveryQueue;
  /** Ids of open requests that were sent to the receiver. */
  readonly #waiting = new Set<string>();
  /** Handlers by event type. */
  readonly #notices: ByEventType<void, [SessionChange]> = {
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
    "turn.ended": (ended, { at, sessionId }) => this.#notifyOfEnd(sessionId, ended, at),
    message: () => undefined,
    "permission.asked": (request, change) => this.#onAsked("permission.asked", request, change),
    "permission.answered": (answered) => this.#onAnswered(answered),
    "question.asked": (request, change) => this.#onAsked("question.asked", request, change),
    "question.answered": (answered) => this.#onAnswered(answered),
    "request.passed": () => undefined,
    "background.changed": () => undefined,
    notice: () => undefined,
    "process.started": () => undefined,
    "process.exited": () => undefined,
  };

  constructor(options: NotifierOptions) {
    const { limits, receiver } = options;
    this.#options = options;
    this.#queue = new DeliveryQueue({ ...limits, receiver, maxWaiting: MAX_QUEUED, maxConcurrent: MAX_CONCURRENT });
  }

  /** Handles a change once durable. Never throws and never waits. */
  onAppended(sessionId: string, change: Append): void {
    try {
      const { at, events, state } = change;
      for (const event of events) decideBy(this.#notices, event, { sessionId, at, requests: state.requests });
    } catch (error) {
      this.#options.log.error("the webhook could not be notified of an event", { sessionId, error: String(error) });
    }
  }

  async offer({ request, at, open, session, sessionId, until }: Offered): Promise<Reception> {
    const { answerUrl } = this.#options;
    const type = request.kind === "question" ? "question.asked" : "permission.asked";
    const matter = { request, open, ...(answerUrl && { answerUrl: answerUrl(sessionId, request.requestId) }) };
    this.#waiting.add(request.requestId);
    const notice = { type, sessionId, at, matter, until, session: Promise.resolve(session) } as const;
    const { outcome, payload } = await this.#send(notice);
    if (outcome === "obsolete") return { is: "withdrawn" };
    if (outcome !== "delivered") return { is: "unreachable" };
    const { whole } = await payload;
    return { is: "delivered", whole };
  }

  withdraw(requestId: string): void {
    if (this.#waiting.delete(requestId)) this.#queue.sweep();
  }

  /** Gives each waiting delivery one more attempt, `graceMs` in total, then drops the rest. */
  async close(graceMs: number): Promise<void> {
    return this.#queue.close(graceMs);
  }

  #onAsked(type: AskedEvent["type"], request: PermissionRequest, { at, requests, sessionId }: SessionChange): void {
    // Skips the event if the receiver can answer, because the request itself is offered there.
    if (this.#options.answerUrl) return;
    const open = requests.find(({ requestId }) => requestId === request.requestId);
    // Does not deliver a request that was answered at once (by a rule, for example).
    if (!open) return;
    this.#waiting.add(request.requestId);
    this.#notify({ type, sessionId, at, matter: { request, open } });
  }

  #onAnswered({ requestId }: DataOf<"permission.answered">): void {
    if (!this.#options.answerUrl) this.withdraw(requestId);
  }

  #notifyOfEnd(sessionId: string, ended: TurnEnded, at: number): void {
    for (const type of ["turn.ended", "budget.reached"] as const) {
      if (type === "budget.reached" && ended.errorSubtype !== BUDGET_EXCEEDED) continue;
      this.#notify({ type, sessionId, at, matter: { ended } });
    }
  }

  #notify(notice: Omit<Notice, "session" | "until">): void {
    // Reads the row now, because the session may be deleted, or the store closed, before the last attempt.
    const session = this.#options.store.rows.get(notice.sessionId).then((record) => record && offeredSession(record));
    session.catch(() => undefined);
    void this.#send({ ...notice, session, until: () => Number.POSITIVE_INFINITY });
  }

  async #send(notice: Notice): Promise<SentNotice> {
    const { matter, session, until } = notice;
    const { log } = this.#options;
    const id = `msg_${randomUUID()}`;
    const payload = session.then((known) => this.#payload(id, notice, known));
    payload.catch(() => undefined);
    return new Promise((resolve) => {
      const delivery: Delivery = {
        id,
        body: async () => JSON.stringify((await payload).payload),
        isWanted: () => "ended" in matter || this.#waiting.has(matter.request.requestId),
        until,
        failed: (attempts, answer, waitMs) =>
          log.debug("a webhook delivery failed and will be retried", { delivery: id, attempts, answer, waitMs }),
        settled: (outcome, attempts, answer) => {
          void this.#settled(notice, { id, outcome, attempts, answer });
          resolve({ outcome, payload });
        },
      };
      this.#queue.add(delivery);
    });
  }

  #payload(id: string, { at, matter, sessionId, type }: Notice, session: OfferedSession | undefined): Payload {
    if (!session) throw new Error("the session was deleted");
    const { mask, version } = this.#options;
    return buildPayload({ id, type, at, version, session: { id: sessionId, ...session } }, matter, mask);
  }

  async #settled(
    { matter, session, sessionId, type }: Notice,
    { id, ...result }: { id: string; outcome: Outcome; attempts: number; answer: string },
  ): Promise<void> {
    const { log, onSettled } = this.#options;
    const about = { type, sessionId, ...("request" in matter && { requestId: matter.request.requestId }) };
    const isFine = result.outcome === "delivered" || result.outcome === "obsolete";
    log[isFine ? "debug" : "warn"]("a webhook delivery ended", { delivery: id, ...about, ...result });
    const known = await session.catch(() => undefined);
    onSettled({ ...about, principal: known?.principal ?? "", outcome: result.outcome });
  }
}

/** Creates the webhook from its parts. This module is loaded only if a webhook is configured. */
export function startWebhook(parts: ApproverParts): StartedApprover | undefined {
  const { audit, config, http, isNamed, log, mask, secret, store, version } = parts;
  if (secret === undefined) return undefined;
  const { notifyUrl: url = "" } = notifyConfigOf(config);
  const { notifyAttempts, notifyRetryMs, notifyTimeoutMs } = constants();
  // Logs the origin only, because the path of such a URL can be a secret.
  log.info("the webhook is enabled", { origin: new URL(url).origin });
  const answerUrl = isNamed && http ? answerUrlBelow(http.publicUrl) : undefined;
  const notifier = new Notifier({
    receiver: { url, key: Buffer.from(secret, "base64"), timeoutMs: notifyTimeoutMs },
    limits: { attempts: notifyAttempts, retryMs: notifyRetryMs },
    version,
    mask,
    store,
    answerUrl,
    onSettled: ({ outcome, principal, requestId, sessionId, type: action }) => {
      http?.countDelivery(outcome);
      const about = { principal, tool: "webhook", action, sessionId, ...(requestId !== undefined && { requestId }) };
      audit?.({ ...about, outcome });
    },
    log,
  });
  return {
    ...(answerUrl && { port: notifier }),
    onAppended: (sessionId, change) => notifier.onAppended(sessionId, change),
    close: async (graceMs) => notifier.close(graceMs),
  };
}

function answerUrlBelow(publicUrl: string): (sessionId: string, requestId: string) => string {
  const base = publicUrl.replace(/\/+$/, "");
  return (sessionId, requestId) => `${base}/requests/${encodeURIComponent(sessionId)}/${encodeURIComponent(requestId)}`;
}
