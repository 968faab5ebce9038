import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../domain/json.ts";
import type { Principal } from "../../domain/principal.ts";
import type { FeedPage } from "../../engine/ports.ts";
import { type Asked, queryOf, readAsked, readParams } from "./asked.ts";
import type { EventParts } from "./parts.ts";

/** Interval of heartbeats, ms. Clients give up a stream after twice the interval of the specification, 30 s. */
const HEARTBEAT_MS = 15_000;
/** Delay before the feed is read again after a failure, or after its end, ms. */
const RETRY_MS = 2_000;
/** Events read at a time. */
const PAGE = 50;

type Kind = "active" | "error" | "event" | "heartbeat";

interface StreamCall {
  readonly principal: Principal;
  /** Sends a notification of the stream. */
  readonly send: (kind: Kind, params: JsonObject) => Promise<void>;
  /** Describes a failure for the client, and logs it. */
  readonly describe: (error: unknown) => JsonObject;
}

/** Reads the parameters. Throws before a stream is open, so that the request itself is refused. */
export async function openStream(params: unknown, parts: EventParts, call: StreamCall): Promise<EventStream> {
  return new EventStream(await readAsked(readParams({}, params), call.principal, parts), parts, call);
}

/** Stream of one subscription. */
export class EventStream {
  readonly #asked: Asked;
  readonly #parts: EventParts;
  readonly #call: StreamCall;
  /** Position up to which the client has heard of everything. */
  #cursor: string | undefined;
  /** Set while the backlog is read, which `maxAgeMs` bounds. */
  #since: number | undefined;
  /** First page, until it is sent. */
  #first: FeedPage | undefined;
  #hasFailed = false;

  constructor(asked: Asked, parts: EventParts, call: StreamCall) {
    this.#asked = asked;
    this.#parts = parts;
    this.#call = call;
    this.#cursor = asked.after;
    this.#since = asked.since;
  }

  /** Sends events until `signal` aborts. Rejects only if the first page cannot be read. */
  async run(signal: AbortSignal): Promise<void> {
    this.#first = await this.#read();
    await this.#activate(this.#first);
    const beat = setInterval(() => void this.#send("heartbeat", { cursor: this.#cursor }), HEARTBEAT_MS);
    // Wrapped in a function to stop TypeScript narrowing `signal.aborted` to `false`.
    const ended = (): boolean => signal.aborted;
    try {
      while (!ended()) await this.#follow(signal);
    } finally {
      clearInterval(beat);
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    try {
      for await (const _ of this.#parts.feed.changes(signal)) {
        await this.#sendNew(signal);
        this.#hasFailed = false;
      }
    } catch (error) {
      if (signal.aborted) return;
      // Reports an outage once. The heartbeats go on, with the last cursor.
      if (!this.#hasFailed) await this.#send("error", { error: this.#call.describe(error) });
      this.#hasFailed = true;
    }
    // Also pauses once the store is closed, which ends `changes` without an error: to read on at once would keep this process
    // from ending.
    await pause(RETRY_MS, signal);
  }

  async #sendNew(signal: AbortSignal): Promise<void> {
    for (let hasMore = true; hasMore;) {
      const page = this.#first ?? (await this.#read());
      if (!this.#first && page.isTruncated) await this.#activate(page);
      this.#first = undefined;
      for (const item of page.items) {
        const occurrence = await this.#parts.present(item);
        if (signal.aborted) return;
        if (occurrence) await this.#send("event", { ...occurrence, cursor: item.cursor });
        this.#cursor = item.cursor;
      }
      ({ cursor: this.#cursor, hasMore } = page);
      if (!hasMore) this.#since = undefined;
    }
  }

  async #read(): Promise<FeedPage> {
    const asked = { ...this.#asked, after: this.#cursor, since: this.#since };
    return this.#parts.feed.read(queryOf(asked, this.#call.principal, PAGE));
  }

  /** Confirms the subscription, or reports a gap: delivery goes on at `start`. */
  async #activate({ isTruncated: truncated, start: cursor }: FeedPage): Promise<void> {
    this.#cursor = cursor;
    await this.#send("active", { cursor, truncated });
  }

  async #send(kind: Kind, params: JsonObject): Promise<void> {
    // Ignores failures: a client that has left reads nothing, and `signal` ends the stream.
    await this.#call.send(kind, params).catch(() => undefined);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
