import { signal } from "@preact/signals";
import type { PendingRequest, SessionRow } from "../../../src/console/wire.ts";
import { ApiProblem } from "../net/api.ts";
import { Backoff } from "../net/backoff.ts";
import { liveEvents, type LiveEvent } from "../net/stream.ts";
import { isSignedOut } from "./me.ts";

/**
 * The only stream of the page, because browsers limit the connections to a server. Views share `connection`, `requests` and the
 * followed session. Reconnects without help; only the log of the followed session then continues after its last received event.
 */

/** State of the stream; `lost` means that the server is unreachable and reconnection goes on. */
export const connection = signal<"connecting" | "live" | "lost">("connecting");
/** Open requests of all sessions. */
export const requests = signal<readonly PendingRequest[]>([]);

type Rows = (rows: readonly SessionRow[]) => void;
const rowListeners = new Set<Rows>();

/**
 * Calls `listener` with changed sessions until the returned function is called. Changes during a disconnection are missed:
 * reload lists in `onConnected`.
 */
export function onRows(listener: Rows): () => void {
  rowListeners.add(listener);
  return () => rowListeners.delete(listener);
}

const connectListeners = new Set<() => void>();

/** Calls `listener` after each connection. Everything but the log of a followed session may have changed unnoticed. */
export function onConnected(listener: () => void): () => void {
  connectListeners.add(listener);
  return () => connectListeners.delete(listener);
}

/** Live events of the followed session. */
export type FollowedEvent = Extract<LiveEvent, { kind: "log" | "session" | "partial" | "gone" }>;

interface Followed {
  readonly sessionId: string;
  next: number;
  readonly onEvent: (event: FollowedEvent) => void;
}

let followed: Followed | undefined;
let stream: AbortController | undefined;

/** Follows the log of `sessionId` from event `from`, without gaps and duplicates. Replaces the previous session. */
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

/** Receives live events until the returned function is called or the user is signed out. */
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
      for await (const event of liveEvents(streamQuery(), own.signal)) {
        // Discards events still in transit for the previous `followed`.
        if (own.signal.aborted) break;
        if (connection.value !== "live") {
          connection.value = "live";
          for (const listener of connectListeners) listener();
        }
        backoff.reset();
        dispatch(event);
      }
    } catch (error) {
      // Ends only if signed out: another tab may be signing in, and a 401 for the old key is temporary.
      if (error instanceof ApiProblem && error.status === 401 && isSignedOut.value) return;
    }
    // Aborted by the page, for example to follow another session: reconnects at once, without a message.
    if (own.signal.aborted) continue;
    connection.value = "lost";
    await backoff.pause();
  }
}

function streamQuery() {
  return followed ? { session: followed.sessionId, from: followed.next } : {};
}

function dispatch(event: LiveEvent): void {
  if (event.kind === "sessions") for (const listener of rowListeners) listener(event.data);
  if (event.kind === "requests") requests.value = event.data;
  if (event.kind === "log" || event.kind === "session" || event.kind === "partial" || event.kind === "gone")
    notifyFollower(event);
}

function notifyFollower(event: FollowedEvent): void {
  if (!followed) return;
  if (event.kind === "log") {
    if (event.data.id < followed.next) return;
    followed.next = event.data.id + 1;
  }
  followed.onEvent(event);
}
