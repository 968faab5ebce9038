import { signal } from "@preact/signals";
import type { PendingRequest, SessionRow } from "../../../src/console/wire.ts";
import { ApiProblem } from "../net/api.ts";
import { Backoff } from "../net/backoff.ts";
import { liveEvents, type LiveEvent } from "../net/stream.ts";
import { isSignedOut } from "./me.ts";

/**
 * The one stream of this page: browsers keep few connections to a server, so that what a view follows comes on the stream
 * that is there anyway. It comes back by itself, and goes on behind the last event that was seen.
 */

/** `lost`: the server is gone; it is asked again and again. */
export const connection = signal<"connecting" | "live" | "lost">("connecting");
/** All that is open now, of all sessions. */
export const requests = signal<readonly PendingRequest[]>([]);

type Rows = (rows: readonly SessionRow[]) => void;
const rowListeners = new Set<Rows>();

/** Told of sessions that have changed, until the returned function is called. A list is to be loaded anew after `onConnected`. */
export function onRows(listener: Rows): () => void {
  rowListeners.add(listener);
  return () => rowListeners.delete(listener);
}

const connectListeners = new Set<() => void>();

/** Told each time the stream has come back: what was missed beside a followed session's log is to be asked for. */
export function onConnected(listener: () => void): () => void {
  connectListeners.add(listener);
  return () => connectListeners.delete(listener);
}

/** What a followed session tells. */
export type FollowedEvent = Extract<LiveEvent, { kind: "log" | "session" | "partial" | "gone" }>;

interface Followed {
  readonly sessionId: string;
  next: number;
  readonly onEvent: (event: FollowedEvent) => void;
}

let followed: Followed | undefined;
let stream: AbortController | undefined;

/** From now on the session's events come too, from id `from` on: without a gap, and none twice. One at a time. */
export function follow(sessionId: string, from: number, onEvent: Followed["onEvent"]): () => void {
  const mine = { sessionId, next: from, onEvent };
  followed = mine;
  stream?.abort();
  return () => {
    if (followed !== mine) return;
    followed = undefined;
    stream?.abort();
  };
}

/** Listens until the returned function is called, or the server knows us no more. */
export function listen(): () => void {
  const ended = new AbortController();
  void keepListening(ended.signal);
  return () => {
    ended.abort();
    stream?.abort();
    connection.value = "connecting";
    requests.value = [];
  };
}

async function keepListening(ended: AbortSignal): Promise<void> {
  const backoff = new Backoff();
  while (!ended.aborted) {
    const own = new AbortController();
    stream = own;
    try {
      for await (const event of liveEvents(whatToAsk(), own.signal)) {
        // What was still on its way belongs to whatever was followed before.
        if (own.signal.aborted) break;
        if (connection.value !== "live") {
          connection.value = "live";
          for (const listener of connectListeners) listener();
        }
        backoff.reset();
        take(event);
      }
    } catch (error) {
      // With the key of before, while another window signs in, it is only for now.
      if (error instanceof ApiProblem && error.status === 401 && isSignedOut.value) return;
    }
    // Closed by the page to follow another session: reconnects at once, without a message.
    if (own.signal.aborted) continue;
    connection.value = "lost";
    await backoff.pause();
  }
}

function whatToAsk() {
  return followed ? { session: followed.sessionId, from: followed.next } : {};
}

function take(event: LiveEvent): void {
  if (event.kind === "sessions") for (const listener of rowListeners) listener(event.data);
  if (event.kind === "requests") requests.value = event.data;
  if (event.kind === "log" || event.kind === "session" || event.kind === "partial" || event.kind === "gone")
    tellFollower(event);
}

function tellFollower(event: FollowedEvent): void {
  if (!followed) return;
  if (event.kind === "log") {
    if (event.data.id < followed.next) return;
    followed.next = event.data.id + 1;
  }
  followed.onEvent(event);
}
