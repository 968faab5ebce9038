import { createHash } from "node:crypto";
import { requestOf, type StoredEvent } from "../../domain/event.ts";
import type { Append, Delivery, NewDelivery, SessionBackend, SessionRecord } from "../../engine/ports.ts";
import type { OutgoingMessage } from "../../webhooks/send.ts";
import type { Outcome } from "../../webhooks/worker.ts";
import type { ApproverParts, ApproverPort, Offered, Reception, StartedApprover } from "../approver.ts";
import { offeredSession } from "../offers.ts";
import { noticesOf, offerOf } from "./notices.ts";
import { buildPayload, type NoticeSubject } from "./payload.ts";
import { notifyConfigOf, NoticeType } from "./settings.ts";

/**
 * Notifies the operator's webhook of events that this server writes to session logs. Only the operator can name a receiver. If
 * the webhook is on the approval chain, requests are sent only when offered. The store keeps ids; each attempt builds the
 * message from the log.
 */

interface NotifierOptions extends Pick<ApproverParts, "audit" | "http" | "mask" | "version"> {
  readonly url: string;
  readonly key: Buffer;
  readonly store: Pick<SessionBackend, "log" | "nodeId" | "outbox" | "rows">;
  /** Returns the URL for answering a request; `undefined` if the webhook is only notified. */
  readonly answerUrl: ((sessionId: string, requestId: string) => string) | undefined;
}

interface CurrentOffer {
  readonly offered: Offered;
  readonly resolve: (reception: Reception) => void;
  /** See `Reception`; as in the last message. */
  whole: boolean;
}

interface Subject {
  readonly at: number;
  readonly matter: NoticeSubject;
}

class Notifier implements ApproverPort {
  readonly #options: NotifierOptions;
  readonly target: string;
  /** By `messageId`. */
  readonly #offers = new Map<string, CurrentOffer>();
  /** Fields of audit entries. */
  readonly #about = new WeakMap<Delivery, { readonly principal: string; readonly requestId?: string }>();

  constructor(options: NotifierOptions) {
    this.#options = options;
    // Equal for all servers with this URL, so that each sends what another has left. Hashed, because a path can be a secret.
    this.target = `operator:${createHash("sha256").update(options.url).digest("hex").slice(0, 16)}`;
  }

  deliveriesOf(sessionId: string, change: Append): NewDelivery[] {
    const isToldOfRequests = this.#options.answerUrl === undefined;
    return noticesOf(sessionId, change, { ...this.#place(), isToldOfRequests });
  }

  async offer(offered: Offered): Promise<Reception> {
    return new Promise((resolve, reject) => {
      const { messageId } = this.#deliveryOf(offered);
      this.#offers.get(messageId)?.resolve({ is: "withdrawn" });
      this.#offers.set(messageId, { offered, resolve, whole: false });
      this.#add(offered).catch((error: unknown) => {
        this.#offers.delete(messageId);
        reject(error);
      });
    });
  }

  /** Leaves the delivery in the store: its next attempt finds no offer. */
  withdraw(requestId: string): void {
    for (const [messageId, { offered, resolve }] of this.#offers) {
      if (offered.request.requestId !== requestId) continue;
      this.#offers.delete(messageId);
      resolve({ is: "withdrawn" });
    }
  }

  /** Builds a message. Resolves with `undefined` if the session was deleted, or the request was answered or withdrawn. */
  async receive(delivery: Delivery): Promise<OutgoingMessage | undefined> {
    const { eventId, messageId: id, sessionId } = delivery;
    const { key, mask, store, url, version } = this.#options;
    const [[event], session] = await Promise.all([store.log.read(sessionId, eventId, 1), store.rows.get(sessionId)]);
    const type = NoticeType.safeParse(delivery.name).data;
    if (!session || type === undefined || event?.id !== eventId) return undefined;
    const { principal } = session;
    const requestId = requestOf(event)?.requestId;
    this.#about.set(delivery, { principal, ...(requestId !== undefined && { requestId }) });
    const subject = this.#subjectOf(id, event, session);
    if (!subject) return undefined;
    const { at, matter } = subject;
    const shown = { id: sessionId, ...offeredSession(session) };
    const { payload, whole } = buildPayload({ id, type, at, version, session: shown }, matter, mask);
    const offer = this.#offers.get(id);
    if (offer) offer.whole = whole;
    return { id, url, keys: [key], body: JSON.stringify(payload), reach: "any" };
  }

  onSettled(delivery: Delivery, outcome: Outcome): void {
    const { messageId, name: action, sessionId, until } = delivery;
    const offer = this.#offers.get(messageId);
    if (offer && outcome === "failed" && offer.offered.until() > until) {
      // Goes on, because the time of the webhook was extended.
      this.#add(offer.offered).catch(() => this.#end(messageId, { is: "unreachable" }));
      return;
    }
    const { audit, http } = this.#options;
    http?.countDelivery(outcome);
    const about = this.#about.get(delivery) ?? { principal: "" };
    audit?.({ ...about, tool: "webhook", action, sessionId, outcome });
    if (outcome === "obsolete") this.#end(messageId, { is: "withdrawn" });
    else if (outcome === "delivered") this.#end(messageId, { is: "delivered", whole: offer?.whole === true });
    else this.#end(messageId, { is: "unreachable" });
  }

  #end(messageId: string, reception: Reception): void {
    this.#offers.get(messageId)?.resolve(reception);
    this.#offers.delete(messageId);
  }

  async #add(offered: Offered): Promise<void> {
    await this.#options.store.outbox.add(offered.sessionId, [this.#deliveryOf(offered)]);
  }

  #deliveryOf({ open, sessionId, until }: Offered): NewDelivery {
    return offerOf(sessionId, open, { ...this.#place(), until: until() });
  }

  #place(): { readonly target: string; readonly nodeId: string } {
    return { target: this.target, nodeId: this.#options.store.nodeId };
  }

  #subjectOf(messageId: string, event: StoredEvent, { id: sessionId, state }: SessionRecord): Subject | undefined {
    if (event.type === "turn.ended") return { at: event.at, matter: { ended: event.data } };
    const { answerUrl } = this.#options;
    const request = requestOf(event);
    const open = state.requests.find(({ requestId }) => requestId === request?.requestId);
    if (!request || !open) return undefined;
    if (!answerUrl) return { at: event.at, matter: { request, open } };
    const offer = this.#offers.get(messageId);
    if (!offer) return undefined;
    return { at: offer.offered.at, matter: { request, open, answerUrl: answerUrl(sessionId, request.requestId) } };
  }
}

/** Creates the webhook from its parts. This module is loaded only if a webhook is configured. */
export function startWebhook({ config, isNamed, log, secret, ...parts }: ApproverParts): StartedApprover | undefined {
  if (secret === undefined) return undefined;
  const { notifyUrl: url = "" } = notifyConfigOf(config);
  // Logs the origin only, because the path of such a URL can be a secret.
  log.info("the webhook is enabled", { origin: new URL(url).origin });
  const answerUrl = isNamed && parts.http ? answerUrlBelow(parts.http.publicUrl) : undefined;
  const notifier = new Notifier({ ...parts, url, key: Buffer.from(secret, "base64"), answerUrl });
  return {
    ...(answerUrl && { port: notifier }),
    outgoing: {
      target: notifier.target,
      deliveriesOf: (sessionId, change) => notifier.deliveriesOf(sessionId, change),
      receiver: async (delivery) => notifier.receive(delivery),
      onSettled: (delivery, outcome) => notifier.onSettled(delivery, outcome),
    },
  };
}

function answerUrlBelow(publicUrl: string): (sessionId: string, requestId: string) => string {
  const base = publicUrl.replace(/\/+$/, "");
  return (sessionId, requestId) => `${base}/requests/${encodeURIComponent(sessionId)}/${encodeURIComponent(requestId)}`;
}
