import type { DeliveryFault, Feed, FeedFilter, FeedItem, Outbox } from "../../engine/ports.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Occurrence } from "../../view/occurrence.ts";
import type { WebhookReach } from "../../domain/feed.ts";
import type { EventStreams } from "./open-streams.ts";

export const EVENTS_EXTENSION = "io.modelcontextprotocol/events";

export const EVENT_METHODS = [
  "events/list",
  "events/poll",
  "events/stream",
  "events/subscribe",
  "events/unsubscribe",
] as const;
export type EventMethod = (typeof EVENT_METHODS)[number];

/** Parts of the Events extension (SEP-3415), created by app/ on first use. */
export interface EventParts {
  readonly feed: Feed;
  /** Presents an item. Resolves to `undefined` if its session was deleted meanwhile. */
  readonly present: (item: FeedItem) => Promise<Occurrence | undefined>;
  /** Returns the filter for `asked`. Throws SESSION_NOT_FOUND for a session of another principal. */
  readonly filterOf: (principal: Principal, asked: FeedFilter) => Promise<FeedFilter>;
}

/** Webhooks that callers name, created by app/ on first use. */
export interface WebhookParts {
  readonly outbox: Pick<Outbox, "isVerified" | "subscribe" | "unsubscribe">;
  /** Returns the problem of a URL in words; `undefined` if the URL is permitted. */
  readonly urlProblem: (url: string) => string | undefined;
  /** Returns the key of a secret; `undefined` if the secret is malformed. */
  readonly keyOf: (secret: string) => Buffer | undefined;
  /** Asks the receiver for its consent. Resolves with `undefined` if given, with `busy` if too many wait for its host. */
  readonly challenge: (candidate: {
    readonly id: string;
    readonly url: string;
    readonly key: Buffer;
  }) => Promise<DeliveryFault | "busy" | undefined>;
}

/** Events in the options of a server. */
export interface EventOptions {
  readonly parts: () => Promise<EventParts>;
  readonly streams: EventStreams;
  /** Webhooks that callers may name. */
  readonly reach: WebhookReach | "off";
  /** Created by the first use of a webhook. */
  readonly webhooks: () => Promise<WebhookParts>;
}
