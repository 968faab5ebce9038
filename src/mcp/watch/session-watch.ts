import { AppError } from "../../domain/error.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Engine } from "../../engine/api.ts";
import type { Logger } from "../../engine/ports.ts";
import { MAX_TIMER_MS } from "../../domain/timer.ts";

/**
 * Who wants to hear that a session has changed. Changes are seen in the log, so that it makes no difference which server
 * runs the session; one reader a session serves all who follow it.
 */

/** Between two tellings of one session, ms: what happens meanwhile is told at the end of it. */
const LULL_MS = 250;
/** Until the log is tried again after it could not be read, ms. */
const RETRY_MS = 2_000;

interface Followed {
  readonly listeners: Set<() => void>;
  readonly stop: AbortController;
  /** What is before it has been told. */
  next: number;
}

/** A session, and the position in its log from which a subscriber follows it. */
export interface From {
  readonly id: string;
  readonly cursor: number;
}

export class SessionWatch {
  readonly #engine: Pick<Engine, "get" | "wait">;
  readonly #log: Pick<Logger, "warn">;
  readonly #followed = new Map<string, Followed>();

  constructor(engine: Pick<Engine, "get" | "wait">, log: Pick<Logger, "warn">) {
    this.#engine = engine;
    this.#log = log;
  }

  /** Where the next change of the session will be; SESSION_NOT_FOUND where it is not the principal's. */
  async cursorOf(principal: Principal, sessionId: string): Promise<number> {
    const { state } = await this.#engine.get(principal, sessionId);
    return state.lastEventId + 1;
  }

  /** Calls `onChange` for what happens at or after the cursor, until the returned function is called. */
  follow(principal: Principal, session: From, onChange: () => void): () => void {
    const key = JSON.stringify([principal, session.id]);
    const followed = this.#followed.get(key) ?? this.#begin(key, principal, session);
    // A new subscriber gets what the others got since it read the log; a subscriber that follows twice is notified twice.
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

  #begin(key: string, principal: Principal, { cursor, id }: From): Followed {
    const followed = { listeners: new Set<() => void>(), stop: new AbortController(), next: cursor };
    this.#followed.set(key, followed);
    void this.#read(principal, id, followed).finally(() => {
      if (this.#followed.get(key) === followed) this.#followed.delete(key);
    });
    return followed;
  }

  async #read(principal: Principal, sessionId: string, followed: Followed): Promise<void> {
    const { signal } = followed.stop;
    // A function, because the compiler takes a property that it has seen false for false ever after.
    const ended = (): boolean => signal.aborted;
    while (!ended()) {
      let lull = LULL_MS;
      try {
        await this.#news(principal, sessionId, followed);
      } catch (error) {
        if (ended()) return;
        if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") {
          // It was deleted: that is the last there is to tell.
          notify(followed);
          return;
        }
        this.#log.warn("a session that is followed cannot be read", { sessionId, error: String(error) });
        lull = RETRY_MS;
      }
      await pause(lull, signal);
    }
  }

  /** What came in the lull is told at once, with all that has come by then. */
  async #news(principal: Principal, sessionId: string, followed: Followed): Promise<void> {
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

function notify({ listeners }: Followed): void {
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
