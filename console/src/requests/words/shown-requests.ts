import type { PendingRequest } from "../../../../src/console/wire.ts";

/**
 * Requests in the list: all open requests, and for `CLOSED_SHOWN_MS` closed requests, so that the user can read the outcome.
 */

export interface Shown {
  readonly request: PendingRequest;
  /** Time at which the request was no longer open, ms since the epoch. */
  readonly goneAt?: number;
}

export const CLOSED_SHOWN_MS = 6_000;

/** Key of a request. Includes the session, because `requestId` is unique only within a session. */
export function requestKey({ requestId, sessionId }: Pick<PendingRequest, "requestId" | "sessionId">): string {
  return `${sessionId}/${requestId}`;
}

/**
 * Maximum number of closed requests that stay beyond `CLOSED_SHOWN_MS` above an open request, which would move without them.
 */
const MAX_CLOSED_ABOVE = 10;

/** Adds `open` to the list and drops requests closed long ago. Oldest first. */
export function updateShown(before: readonly Shown[], open: readonly PendingRequest[], now: number): Shown[] {
  const isOpen = new Set(open.map(requestKey));
  const over = before.flatMap(({ goneAt = now, request }): Shown[] =>
    isOpen.has(requestKey(request)) ? [] : [{ request, goneAt }],
  );
  const all = [...open.map((request): Shown => ({ request })), ...over].toSorted(oldestFirst);
  const onPage = groupBySession(all).flatMap(({ shown }) => shown);
  const above = onPage.slice(0, onPage.findLastIndex(({ goneAt }) => goneAt === undefined) + 1).filter(isOver);
  const kept = new Set(above.toSorted((one, other) => other.goneAt - one.goneAt).slice(0, MAX_CLOSED_ABOVE));
  return all.filter((each) => !isOver(each) || now - each.goneAt < CLOSED_SHOWN_MS || kept.has(each));
}

/** Breaks ties of `createdAt`, because a card must not move when another is answered. */
function oldestFirst({ request: one }: Shown, { request: other }: Shown): number {
  const [first, second] = [one.sessionId, other.sessionId];
  return one.createdAt - other.createdAt || first.localeCompare(second) || one.eventId - other.eventId;
}

function isOver(shown: Shown): shown is Required<Shown> {
  return shown.goneAt !== undefined;
}

export interface Group {
  readonly sessionId: string;
  readonly title: string;
  readonly cwd: string;
  readonly shown: readonly Shown[];
}

/** Groups requests by session, in the order of `all`. */
export function groupBySession(all: readonly Shown[]): Group[] {
  const groups = new Map<string, Shown[]>();
  for (const each of all) {
    const { sessionId } = each.request;
    groups.set(sessionId, [...(groups.get(sessionId) ?? []), each]);
  }
  return [...groups].map(([sessionId, shown]) => {
    const { cwd = "", title = "" } = shown.at(-1)?.request ?? {};
    return { sessionId, title, cwd, shown };
  });
}
