import { z } from "zod";
import type { Principal } from "../../domain/principal.ts";
import type { FeedPage } from "../../engine/ports.ts";
import { millis, queryOf, readAsked, readParams } from "./asked.ts";
import type { EventParts } from "./parts.ts";

/** Events of an answer: by default, and at most. */
const [DEFAULT_EVENTS, MAX_EVENTS] = [50, 200];
/** Time until the next poll, ms: after a poll that was held, and after one that was answered at once. */
const [HELD_MS, UNHELD_MS] = [1_000, 5_000];

const SHAPE = { maxEvents: z.number().int().min(1).exactOptional(), timeoutMs: millis.exactOptional() };

interface PollCall {
  readonly principal: Principal;
  /** Ends the wait: the client has left or needs its answer now. */
  readonly signal: AbortSignal;
  readonly maxWaitMs: number;
}

/** Answers `events/poll`: holds the request until there is an event, for at most `timeoutMs`. Without a cursor, answers at once. */
export async function pollEvents(params: unknown, parts: EventParts, { maxWaitMs, principal, signal }: PollCall) {
  const { maxEvents = DEFAULT_EVENTS, timeoutMs = 0, ...given } = readParams(SHAPE, params);
  const asked = await readAsked(given, principal, parts);
  const limit = Math.min(maxEvents, MAX_EVENTS);
  const waitMs = asked.after === undefined ? 0 : Math.min(timeoutMs, maxWaitMs);
  const read = async (after: string | undefined) => parts.feed.read(queryOf({ ...asked, after }, principal, limit));
  let page = await read(asked.after);
  if (waitMs > 0 && !hasNews(page)) {
    await withTimeout(waitMs, signal, async (ending) => {
      for await (const _ of parts.feed.changes(ending)) {
        page = await read(page.cursor);
        if (hasNews(page)) break;
      }
    });
  }
  const events = [];
  for (const item of page.items) events.push(await parts.present(item));
  const { cursor, hasMore, isTruncated: truncated } = page;
  return {
    events: events.filter((event) => event !== undefined),
    cursor,
    truncated,
    hasMore,
    nextPollMs: waitMs > 0 ? HELD_MS : UNHELD_MS,
  };
}

function hasNews({ isTruncated, items }: FeedPage): boolean {
  return items.length > 0 || isTruncated;
}

async function withTimeout(
  ms: number,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    await run(over.signal);
  } finally {
    end();
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}
