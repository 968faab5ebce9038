import { createHash } from "node:crypto";
import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { mayNameWebhooks, type WebhookReach } from "../../domain/feed.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Principal } from "../../domain/principal.ts";
import type { DeliveryFault, FeedFilter, Subscription } from "../../engine/ports.ts";
import { readField } from "../unanswered-requests.ts";
import { readAsked, readParams } from "./asked.ts";
import { eventError } from "./errors.ts";
import type { EventParts, WebhookParts } from "./parts.ts";

/** `events/subscribe` and `events/unsubscribe`, for webhooks. */

/** Lifetime of a subscription, ms: by default, at least and at most. */
const [DEFAULT_TTL_MS, MIN_TTL_MS, MAX_TTL_MS] = [3_600_000, 60_000, 86_400_000];
/** Time for which a replaced secret also signs, ms. */
const GRACE_MS = 300_000;
const LIMITS = { total: 1_000, perPrincipal: 100 };

/** Checked by hand, so that no error repeats the secret. */
const DELIVERY = z.unknown().optional();
const SHAPE = { delivery: DELIVERY, ttlMs: z.number().int().min(1).exactOptional() };

interface Caller {
  readonly principal: Principal;
}

/** Refuses callers who may have no webhooks. */
export function requireWebhooks(reach: WebhookReach | "off", principal: Principal): void {
  if (reach === "off") {
    const problem = "This server sends no webhooks. Use events/poll or events/stream.";
    throw eventError("Unsupported", problem, { feature: "deliveryMode", value: "webhook" });
  }
  if (mayNameWebhooks(principal, reach)) return;
  const problem = "The local user may name no webhooks. The operator can allow them with --event-webhooks any.";
  throw eventError("Forbidden", `${problem} Or use events/poll or events/stream.`);
}

export async function subscribe(
  params: unknown,
  { parts, webhooks }: { readonly parts: EventParts; readonly webhooks: WebhookParts },
  { principal }: Caller,
): Promise<JsonObject> {
  const { delivery, ttlMs = DEFAULT_TTL_MS, ...given } = readParams(SHAPE, params);
  const { key, secret, url } = readDelivery(delivery, webhooks);
  const { after, filter, name, since } = await readAsked(given, principal, parts);
  const id = idOf(principal, url, { name, filter: given.arguments });
  if (!(await webhooks.outbox.isVerified(principal, url))) await requireConsent(webhooks, { id, url, key });
  // Grants the longest lifetime to a client that wants no end. `readParams` drops null.
  const wanted = readField(params, "ttlMs") === null ? MAX_TTL_MS : ttlMs;
  const done = await webhooks.outbox.subscribe(
    { id, principal, name, filter, url, secret, ttlMs: Math.min(Math.max(wanted, MIN_TTL_MS), MAX_TTL_MS) },
    { start: { after, since }, limits: LIMITS, graceMs: GRACE_MS },
  );
  if (done === "total" || done === "perPrincipal") {
    const whose = done === "total" ? "This server" : "The caller";
    const problem = `${whose} has ${String(LIMITS[done])} subscriptions. End one with events/unsubscribe.`;
    throw eventError("ResourceExhausted", problem, { limit: "subscriptions", max: LIMITS[done] });
  }
  const { cursor, isTruncated: truncated, subscription } = done;
  const deliveryStatus = statusOf(subscription);
  return {
    id,
    refreshBefore: new Date(subscription.expiresAt).toISOString(),
    cursor,
    truncated,
    ...(deliveryStatus && { deliveryStatus }),
  };
}

/** Ends a subscription of the caller. `idOf` includes the principal, so that a caller cannot end the subscription of another. */
export async function unsubscribe(
  params: unknown,
  { outbox }: Pick<WebhookParts, "outbox">,
  { principal }: Caller,
): Promise<JsonObject> {
  const { arguments: filter, delivery, name } = readParams({ delivery: DELIVERY }, params);
  const { url } = readUrl(delivery);
  if (await outbox.unsubscribe(idOf(principal, url, { name, filter }))) return {};
  const problem = "The caller has no subscription with this name, these arguments and this URL.";
  throw eventError("NotFound", `${problem} It may have expired.`, { kind: "subscription" });
}

const Delivery = z.looseObject({
  mode: z.string().default("webhook"),
  url: z.string(),
  secret: z.unknown().optional(),
});

/** Returns the URL in one spelling. */
function readUrl(given: unknown): { readonly url: string; readonly secret: unknown } {
  const { data } = Delivery.safeParse(given);
  if (!data) throw invalidArgument("delivery", "must be an object with mode, url and secret.");
  if (data.mode !== "webhook") {
    const problem = "Only the delivery mode webhook has subscriptions. Use events/poll or events/stream.";
    throw eventError("Unsupported", problem, { feature: "deliveryMode", value: data.mode.slice(0, 100) });
  }
  return { url: URL.canParse(data.url) ? new URL(data.url).href : data.url, secret: data.secret };
}

function readDelivery(given: unknown, { keyOf, urlProblem }: Pick<WebhookParts, "keyOf" | "urlProblem">) {
  const { secret, url } = readUrl(given);
  const problem = urlProblem(url);
  if (problem !== undefined) throw invalidArgument("delivery.url", problem);
  const key = typeof secret === "string" ? keyOf(secret) : undefined;
  if (typeof secret !== "string" || !key) {
    throw invalidArgument("delivery.secret", "must be whsec_ and 24 to 64 random bytes in base64.");
  }
  return { key, secret, url };
}

/** Derives the id from the key of the subscription, so that a repeated call finds it, in any server of the store. */
function idOf(principal: Principal, url: string, { filter, name }: { filter: FeedFilter; name: string }): string {
  const { cwd, sessionId } = filter;
  const text = JSON.stringify([principal, url, name, { cwd, sessionId }]);
  return `sub_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

const REASONS: Readonly<Record<DeliveryFault, string>> = {
  connection_refused:
    "delivery.url cannot be reached: its host name does not resolve, has no permitted address, or refuses the connection.",
  timeout: "The receiver at delivery.url did not answer in time.",
  tls_error: "The certificate or TLS of delivery.url cannot be used.",
  http_4xx:
    "The receiver at delivery.url answered the verification with a redirect or an error (3xx, 4xx). It must answer 2xx.",
  http_5xx: "The receiver at delivery.url failed at the verification (5xx). It must answer 2xx.",
  challenge_failed:
    'The receiver at delivery.url must answer a verification with {"challenge": "..."}, the challenge of the request.',
};

async function requireConsent(
  { challenge }: Pick<WebhookParts, "challenge">,
  candidate: Parameters<WebhookParts["challenge"]>[0],
): Promise<void> {
  const reason = await challenge(candidate);
  if (reason === undefined) return;
  if (reason === "busy") {
    const problem = "Too many verifications of this host are under way. Try again in a minute.";
    throw eventError("ResourceExhausted", problem, { limit: "verifications" });
  }
  throw eventError("CallbackEndpointError", REASONS[reason], { reason });
}

/** Returns the status of earlier deliveries; `undefined` before the first. Delivery is never suspended. */
function statusOf({ deliveredAt, failedSince, lastFault }: Subscription): JsonObject | undefined {
  if (deliveredAt === undefined && failedSince === undefined) return undefined;
  const timeOf = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString());
  return {
    active: true,
    lastDeliveryAt: timeOf(deliveredAt),
    lastError: lastFault ?? null,
    ...(failedSince !== undefined && { failedSince: timeOf(failedSince) }),
  };
}
