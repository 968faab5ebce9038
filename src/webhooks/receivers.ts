import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { isLoopback, isSafeAddress } from "../config/loopback.ts";
import { parseJson } from "../domain/json.ts";
import { mayNameWebhooks, type WebhookReach } from "../domain/feed.ts";
import type { Delivery, DeliveryFault, FeedItem, Outbox, Subscription } from "../engine/ports.ts";
import { isPublicAddress } from "../security/public-address.ts";
import { type OutgoingMessage, type Receiver, send } from "./send.ts";

/** Webhooks that clients name (SEP-3415): permitted URLs, the consent of the receiver, and the message of an event. */

const MAX_URL_LENGTH = 2_048;

/** Header that names the subscription, so that a receiver can choose its secret. */
const SUBSCRIPTION_HEADER = "X-MCP-Subscription-Id";

/** Returns the problem of a URL that a client names for its webhook, in words; `undefined` if the URL is permitted. */
export function urlProblem(url: string, reach: WebhookReach): string | undefined {
  if (url.length > MAX_URL_LENGTH) return `is longer than ${String(MAX_URL_LENGTH)} characters. Shorten it.`;
  if (!URL.canParse(url)) return "is not a URL. Send an https URL.";
  const { hash, hostname, password, protocol, username } = new URL(url);
  if (protocol !== "https:" && (reach === "public" || !isSafeAddress(url))) {
    return reach === "public" ? "must be an https URL." : "must be an https URL, or http on loopback.";
  }
  if (username !== "" || password !== "") return "must not contain a user or password.";
  if (hash !== "") return "must not contain a fragment.";
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const isSpecial = isLoopback(host) || (isIP(host) !== 0 && !isPublicAddress(host));
  if (reach === "any" || !isSpecial) return undefined;
  return "must have a public address. The operator can allow others with --event-webhooks any.";
}

const SECRET = /^whsec_(?<base64>[\w+/-]*={0,2})$/;
/** Bounds of a secret, bytes, by the specification of Standard Webhooks. */
const [MIN_BYTES, MAX_BYTES] = [24, 64];

/** Returns the key of a secret; `undefined` if the secret is malformed. */
export function keyOf(secret: string): Buffer | undefined {
  const { base64 } = SECRET.exec(secret)?.groups ?? {};
  if (base64 === undefined || /[-_]/.test(base64)) return undefined;
  const key = Buffer.from(base64, "base64");
  return key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}

function keysOf({ formerSecret, secret }: Subscription, now: number): Buffer[] {
  const secrets = formerSecret && formerSecret.until > now ? [secret, formerSecret.secret] : [secret];
  return secrets.flatMap((each) => keyOf(each) ?? []);
}

interface EventSources {
  readonly outbox: Pick<Outbox, "find">;
  /** Presents an item as `EventOccurrence`. Resolves with `undefined` if its session was deleted meanwhile. */
  readonly present: (item: Pick<FeedItem, "eventId" | "name" | "sessionId">) => Promise<object | undefined>;
  readonly reach: WebhookReach;
}

/** Returns the receiver of all subscriptions. */
export function subscriberReceiver({ outbox, present, reach }: EventSources): Receiver {
  return async ({ cursor = null, eventId, messageId, sessionId, target }: CursorDelivery) => {
    const subscription = await outbox.find(target);
    if (!subscription) return undefined;
    const { name, principal, url } = subscription;
    // Applies the setting of this server, which may be stricter than when the client subscribed.
    if (!mayNameWebhooks(principal, reach) || urlProblem(url, reach) !== undefined) return undefined;
    const occurrence = await present({ name, sessionId, eventId });
    if (!occurrence) return undefined;
    return {
      url,
      reach,
      keys: keysOf(subscription, Date.now()),
      headers: { [SUBSCRIPTION_HEADER]: target },
      // Equals `eventId`, because clients compare the two.
      id: messageId,
      body: JSON.stringify({ ...occurrence, cursor }),
    };
  };
}

type CursorDelivery = Omit<Delivery, "cursor"> & { readonly cursor?: string | null };

interface Candidate {
  readonly id: string;
  readonly url: string;
  readonly key: Buffer;
}

/** Maximum number of verifications that wait for one of the same host. */
const MAX_WAITING = 16;

/**
 * Asks receivers for their consent: each must return a random text, so that a caller cannot direct events at a server that
 * did not agree. One at a time for a host.
 */
export class Challenges {
  readonly #options: { readonly reach: WebhookReach; readonly timeoutMs: number };
  readonly #queues = new Map<string, { count: number; last: Promise<unknown> }>();

  constructor(options: { readonly reach: WebhookReach; readonly timeoutMs: number }) {
    this.#options = options;
  }

  /** Resolves with `undefined` if the receiver consents, with `busy` if too many wait for its host. */
  async ask(candidate: Candidate): Promise<DeliveryFault | "busy" | undefined> {
    const { host } = new URL(candidate.url);
    const queue = this.#queues.get(host) ?? { count: 0, last: Promise.resolve() };
    if (queue.count > MAX_WAITING) return "busy";
    this.#queues.set(host, queue);
    queue.count += 1;
    const asked = queue.last.then(async () => this.#ask(candidate));
    queue.last = asked;
    return asked.finally(() => {
      queue.count -= 1;
      if (queue.count === 0) this.#queues.delete(host);
    });
  }

  async #ask({ id, key, url }: Candidate): Promise<DeliveryFault | undefined> {
    const { reach, timeoutMs } = this.#options;
    const challenge = randomBytes(32).toString("base64url");
    const message: OutgoingMessage = {
      url,
      reach,
      keys: [key],
      headers: { [SUBSCRIPTION_HEADER]: id },
      id: `msg_verification_${randomUUID()}`,
      body: JSON.stringify({ type: "verification", challenge }),
    };
    const { signal } = new AbortController();
    const { fault, text = "" } = await send(message, { timeoutMs, signal, readsBody: true });
    return fault ?? (isEqual(echoIn(text), challenge) ? undefined : "challenge_failed");
  }
}

function echoIn(text: string): string {
  const body = parseJson(text);
  const isEcho = typeof body === "object" && body !== null && "challenge" in body && typeof body.challenge === "string";
  return isEcho ? String(body.challenge) : "";
}

/** Compares in constant time. */
function isEqual(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
