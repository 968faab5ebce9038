import { AppError } from "../../domain/error.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Engine } from "../../engine/api.ts";
import type { Logger } from "../../engine/ports.ts";
import { MAX_TIMER_MS } from "../../domain/timer.ts";

/**
 * Notifies subscribers of changes in sessions. Reads the log, so that any server may run the session. Subscribers of a session
 * share a reader.
 */

/** Minimum interval between notifications about one session, ms. Events in between share the next notification. */
const NOTIFY_INTERVAL_MS = 250;
/** Delay before the log is read again after a failure, ms. */
const RETRY_MS = 2_000;

interface FollowedSession {
  readonly listeners: Set<() => void>;
  readonly stop: AbortController;
  /** Position in the log up to which subscribers were notified. */
  next: number;
}

/** A session, and the position in its log from which a subscriber follows. */
export interface LogPosition {
  readonly id: string;
  readonly cursor: number;
}

export class SessionWatch {
  readonly #engine: Pick<Engine, "get" | "wait">;
  readonly #log: Pick<Logger, "warn">;
  readonly #followed = new Map<string, FollowedSession>();

  constructor(engine: Pick<Engine, "get" | "wait">, log: Pick<Logger, "warn">) {
    this.#engine = engine;
    this.#log = log;
  }

  /** Returns the position of the session's next event. Throws SESSION_NOT_FOUND for a session of another principal. */
  async cursorOf(principal: Principal, sessionId: string): Promise<number> {
    const { state } = await this.#engine.get(principal, sessionId);
    return state.lastEventId + 1;
  }

  /** Calls `onChange` for events from the cursor on, until the returned function is called. */
  follow(principal: Principal, session: LogPosition, onChange: () => void): () => void {
    const key = JSON.stringify([principal, session.id]);
    const followed = this.#followed.get(key) ?? this.#begin(key, principal, session);
    // Notifies a new subscriber of events that others have seen since `cursor`. Wraps `onChange`, so that a caller who follows
    // twice is notified twice.
    const listener = () => onChange();
    followed.listeners.add(listener);
    if (followed.next > session.cursor) listener();
    return () => {
      followed.listeners.delete(listener);
      if (followed.listeners.size > 0) return;
      followed.stop.abort();
      if (this.#followed.get(key) === followed) this.#followed.delete(key);
    };
  }

  #begin(key: string, principal: Principal, { cursor, id }: LogPosition): FollowedSession {
    const followed = { listeners: new Set<() => void>(), stop: new AbortController(), next: cursor };
    this.#followed.set(key, followed);
    void this.#read(principal, id, followed).finally(() => {
      if (this.#followed.get(key) === followed) this.#followed.delete(key);
    });
    return followed;
  }

  async #read(principal: Principal, sessionId: string, followed: FollowedSession): Promise<void> {
    const { signal } = followed.stop;
    // Wrapped in a function to stop TypeScript narrowing `signal.aborted` to `false`.
    const ended = (): boolean => signal.aborted;
    while (!ended()) {
      let lull = NOTIFY_INTERVAL_MS;
      try {
        await this.#waitAndNotify(principal, sessionId, followed);
      } catch (error) {
        if (ended()) return;
        if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") {
          // The session was deleted, so no further change can follow.
          notify(followed);
          return;
        }
        this.#log.warn("a session that is followed cannot be read", { sessionId, error: String(error) });
        lull = RETRY_MS;
      }
      await pause(lull, signal);
    }
  }

  /** Waits for the next event, then notifies once for all events so far, including those during the pause. */
  async #waitAndNotify(principal: Principal, sessionId: string, followed: FollowedSession): Promise<void> {
    const { signal } = followed.stop;
    const sessions = [{ sessionId, cursor: followed.next }];
    await this.#engine.wait(principal, { sessions, until: "event", timeoutMs: MAX_TIMER_MS, signal });
    if (signal.aborted) return;
    const next = await this.cursorOf(principal, sessionId);
    if (next <= followed.next) return;
    followed.next = next;
    notify(followed);
  }
}

function notify({ listeners }: FollowedSession): void {
  for (const listener of listeners) listener();
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms).unref();
    signal.addEventListener("abort", end, { once: true });
  });
}
