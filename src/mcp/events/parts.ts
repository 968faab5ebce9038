import type { Feed, FeedFilter, FeedItem } from "../../engine/ports.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Occurrence } from "../../view/occurrence.ts";
import type { EventStreams } from "./open-streams.ts";

export const EVENTS_EXTENSION = "io.modelcontextprotocol/events";

export const EVENT_METHODS = ["events/list", "events/poll", "events/stream"] as const;
export type EventMethod = (typeof EVENT_METHODS)[number];

/** Parts of the Events extension (SEP-3415), created by app/ on first use. */
export interface EventParts {
  readonly feed: Feed;
  /** Presents an item. Resolves to `undefined` if its session was deleted meanwhile. */
  readonly present: (item: FeedItem) => Promise<Occurrence | undefined>;
  /** Returns the filter for `asked`. Throws SESSION_NOT_FOUND for a session of another principal. */
  readonly filterOf: (principal: Principal, asked: FeedFilter) => Promise<FeedFilter>;
}

/** Events in the options of a server. */
export interface EventOptions {
  readonly parts: () => Promise<EventParts>;
  readonly streams: EventStreams;
}
