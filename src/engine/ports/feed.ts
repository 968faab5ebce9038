import type { FeedName } from "../../domain/feed.ts";
import type { Principal } from "../../domain/principal.ts";

/** Restricts a subscription to a session, or to the sessions of a folder, as recorded in `spec.cwd`. */
export interface FeedFilter {
  readonly sessionId?: string;
  readonly cwd?: string;
}

export interface FeedQuery {
  readonly principal: Principal;
  readonly name: FeedName;
  readonly filter: FeedFilter;
  /** Cursor of the last item read; absent for the present end of the feed. */
  readonly after?: string | undefined;
  /** Leaves out items before, ms since the epoch. */
  readonly since?: number | undefined;
  readonly limit: number;
}

export interface FeedItem {
  readonly name: FeedName;
  readonly sessionId: string;
  /** Id of the event in the log. */
  readonly eventId: number;
  /** Time of the event, ms since the epoch. */
  readonly at: number;
  /** Position after this item. */
  readonly cursor: string;
}

export interface FeedPage {
  readonly items: readonly FeedItem[];
  /** Position before the first item, at which delivery begins. */
  readonly start: string;
  /** Position up to which the feed was read: every item before it has been returned, or does not match. */
  readonly cursor: string;
  /** True if items after `after` were left out: deleted (retention), of another feed, or before `since`. */
  readonly isTruncated: boolean;
  readonly hasMore: boolean;
}

/**
 * The feed: those events of all logs that wake callers (`FEED_NAMES`), in the order of their commits, written in the transaction
 * of the append. Holds ids only, for a week. Sessions with `persistSession: false` leave no trace, here neither.
 */
export interface Feed {
  /** A cursor is an opaque text of `[\w.-]`. Throws INVALID_ARGUMENT for a malformed cursor. */
  read(query: FeedQuery): Promise<FeedPage>;
  /**
   * Yields at once, and after each change by any node that may have added items or deliveries, until `signal` aborts or the store
   * is closed.
   */
  changes(signal: AbortSignal): AsyncIterable<void>;
}
