import { invalidArgument } from "../domain/error.ts";
import { feedEntries, type FeedEntry, feedEventId } from "../domain/feed.ts";
import type { Append } from "../engine/ports.ts";

/** Time for which the feed keeps items, ms. */
export const FEED_KEPT_MS = 7 * 86_400_000;
/** Time for which a delivery is tried, ms. */
export const DELIVERY_MS = 86_400_000;

/** Position in the feed: the number of the last item, in the feed named `feedId`, which is random for each store. */
export interface FeedPosition {
  readonly feedId: string;
  readonly seq: number;
}

const CURSOR = /^(?<feedId>[\da-f]{12})\.(?<seq>[\da-z]{1,11})$/;

export function writeCursor({ feedId, seq }: FeedPosition): string {
  return `${feedId}.${seq.toString(36)}`;
}

/** Throws INVALID_ARGUMENT for a text that no store has written. */
export function readCursor(cursor: string): FeedPosition {
  const { feedId, seq } = CURSOR.exec(cursor)?.groups ?? {};
  const number = Number.parseInt(seq ?? "", 36);
  if (feedId === undefined || !Number.isSafeInteger(number)) {
    throw invalidArgument(
      "cursor",
      "is not a cursor of this server. Send one that it has returned, or null to start now.",
    );
  }
  return { feedId, seq: number };
}

/** Ends of the feed: the number of the last deleted item, and of the last item. */
export interface FeedEnds {
  readonly feedId: string;
  readonly floor: number;
  readonly head: number;
}

/**
 * Finds where to read on after `cursor`. A cursor of another store, of deleted items, or of items that a restored backup lacks
 * starts at the oldest item, and is truncated.
 */
export function startAfter(
  cursor: string | undefined,
  { feedId, floor, head }: FeedEnds,
): { readonly seq: number; readonly isTruncated: boolean } {
  if (cursor === undefined) return { seq: head, isTruncated: false };
  const given = readCursor(cursor);
  const isKnown = given.feedId === feedId && given.seq >= floor && given.seq <= head;
  return isKnown ? { seq: given.seq, isTruncated: false } : { seq: floor, isTruncated: true };
}

/** Columns of feed entries, for both storage engines. */
export function entryColumns(sessionId: string, { eventId, name }: FeedEntry) {
  return { sessionId, eventId, name, messageId: feedEventId(sessionId, eventId) };
}

/** True if an append adds to the feed or the outbox. */
export function wakes({ deliveries = [], events, state }: Append): boolean {
  return deliveries.length > 0 || feedEntries(events, state).length > 0;
}
