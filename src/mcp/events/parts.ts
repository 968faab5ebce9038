import type { Feed, FeedItem } from "../../engine/ports.ts";
import type { Occurrence } from "../../view/occurrence.ts";

/** Parts of the Events extension (SEP-3415), created by app/ on first use. */
export interface EventParts {
  readonly feed: Feed;
  /** Presents an item. Resolves to `undefined` if its session was deleted meanwhile. */
  readonly present: (item: FeedItem) => Promise<Occurrence | undefined>;
}
