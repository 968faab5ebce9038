/**
 * State of the conversation through a proxy: its opening messages, open calls of the client, and open requests of the server.
 * The next daemon receives the opening messages again. Calls are never sent again, and an answer to a request of the old daemon
 * never reaches the new daemon.
 */

type Id = string | number;

interface Message {
  readonly error?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
}

/** Methods that open a conversation, or change the notifications of the client. */
const INITIALIZE = "initialize";
const LEVEL = "logging/setLevel";
const SUBSCRIBE = "resources/subscribe";
const UNSUBSCRIBE = "resources/unsubscribe";
const LISTEN = "subscriptions/listen";
const STREAM = "events/stream";
const EVENTS = "notifications/events/";
const INITIALIZED = "notifications/initialized";
const CANCELLED = "notifications/cancelled";
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

const INTERNAL_ERROR = -32_603;

/** Open `events/stream` of the client. */
interface Stream {
  readonly line: string;
  /** Last cursor that the client has heard. */
  cursor?: string;
  /** Set from `replayLines` to the confirmation by the next daemon, which the client does not need. */
  isReplayed?: boolean;
}

/** Maximum number of session ids for the next daemon. The id named longest ago is dropped first. */
const MAX_SESSIONS = 1_000;
/** Maximum length of a session id, characters. Longer texts are not ids. */
const MAX_ID = 100;

export class Conversation {
  #initialize: string | undefined;
  #initialized: string | undefined;
  #level: string | undefined;
  /** Lines of `resources/subscribe`, by URI. */
  readonly #subscriptions = new Map<string, string>();
  /** Lines of `subscriptions/listen`, which stay open, by request id. */
  readonly #listens = new Map<string, string>();
  /** Streams of events, by request id. */
  readonly #streams = new Map<string, Stream>();
  /** Number of open calls of the client per id (as JSON), because ids may repeat. */
  readonly #calls = new Map<string, number>();
  /** Open requests of the server: the daemon's id by the proxy's id, which is unique for the life of the proxy. */
  readonly #requests = new Map<string, Id>();
  #requestCount = 0;
  /** Session ids in arguments and results of tools, the id named longest ago first. */
  readonly #sessions = new Set<string>();
  /** Ids of requests that `replayLines` has sent again. Their answers are dropped, because the client already has them. */
  readonly #replayedIds = new Set<string>();
  /** Number of `subscriptions/listen` sent again by `replayLines`, whose acknowledgements are dropped. */
  #replayedListens = 0;

  /** True while the daemon owes the client an answer. */
  get isWaiting(): boolean {
    return this.#calls.size > 0;
  }

  /** True if the client needs a daemon even without open calls, for notifications. */
  get awaitsNotifications(): boolean {
    return [this.#subscriptions, this.#listens, this.#streams].some(({ size }) => size > 0);
  }

  /** Ids of sessions that the client has used. */
  get sessions(): string[] {
    return [...this.#sessions];
  }

  /** Returns the line for the daemon; `undefined` for an answer to an earlier daemon. */
  fromClient(line: string): string | undefined {
    const message = parse(line);
    if (!message) return line;
    if (isAnswer(message)) return this.#answerFor(message, line);
    const { id, method } = message;
    if (method === INITIALIZED) this.#initialized = line;
    if (!isId(id)) {
      if (method === CANCELLED) this.#forget(requestIdOf(message));
      return line;
    }
    this.#note(method, message, line);
    this.#noteSession(record(message.params)?.["arguments"]);
    if (method === LISTEN) this.#listens.set(keyOf(id), line);
    else if (method === STREAM) this.#streams.set(keyOf(id), { line });
    else this.#calls.set(keyOf(id), (this.#calls.get(keyOf(id)) ?? 0) + 1);
    return line;
  }

  /** Records a line that was answered without a daemon, so that `replayLines` informs the daemon. */
  noteAnswered(line: string): void {
    const message = parse(line);
    if (!message || typeof message.method !== "string") return;
    if (message.method === INITIALIZED) this.#initialized = line;
    this.#note(message.method, message, line);
  }

  /** Returns the line for the client; `undefined` for an answer that the client already has. */
  fromDaemon(line: string): string | undefined {
    const message = parse(line);
    if (!message) return line;
    const { id, method } = message;
    if (typeof method === "string") return isId(id) ? this.#request(message, id) : this.#notification(message, line);
    if (!isId(id)) return line;
    if (this.#replayedIds.delete(keyOf(id))) return undefined;
    this.#forget(id);
    this.#noteSession(record(message.result)?.["structuredContent"]);
    return line;
  }

  /** Handles the loss of the daemon. Returns errors for open calls, and cancellations of open requests. */
  failOpen(why: string): string[] {
    const errors = [...this.#calls].flatMap(([key, count]) => {
      const id: unknown = JSON.parse(key);
      const answer = { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: why } };
      return Array.from({ length: count }, () => answer);
    });
    const withdrawn = [...this.#requests.keys()].map((requestId) => ({
      jsonrpc: "2.0",
      method: CANCELLED,
      params: { requestId, reason: why },
    }));
    this.#forgetUnanswered();
    this.#calls.clear();
    this.#requests.clear();
    this.#replayedIds.clear();
    return [...errors, ...withdrawn].map((message) => JSON.stringify(message));
  }

  /** Returns the first lines for the next daemon, as the client sent them; streams go on at the last cursor heard. */
  replayLines(): string[] {
    const before = [this.#initialize, this.#level, ...this.#subscriptions.values()];
    for (const line of before) {
      const id = line === undefined ? undefined : parse(line)?.id;
      if (isId(id)) this.#replayedIds.add(keyOf(id));
    }
    this.#replayedListens = this.#listens.size;
    for (const stream of this.#streams.values()) stream.isReplayed = stream.cursor !== undefined;
    const lines = [
      this.#initialize,
      this.#initialized,
      this.#level,
      ...this.#subscriptions.values(),
      ...this.#listens.values(),
      ...[...this.#streams.values()].map((stream) => resumed(stream)),
    ];
    return lines.filter((line) => line !== undefined);
  }

  /** Returns the error for a request that no daemon takes; `undefined` for a notification or an answer. */
  refusal(line: string, why: string): string | undefined {
    const message = parse(line) ?? {};
    const { id } = message;
    if (!isId(id) || isAnswer(message)) return undefined;
    this.#forget(id);
    return JSON.stringify({ jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: why } });
  }

  /** Forgets opening requests that have just failed, because the client may send them again. */
  #forgetUnanswered(): void {
    const isOpen = (line: string | undefined) => {
      const id = line === undefined ? undefined : parse(line)?.id;
      return isId(id) && this.#calls.has(keyOf(id));
    };
    if (isOpen(this.#initialize)) this.#initialize = undefined;
    if (isOpen(this.#level)) this.#level = undefined;
    for (const [uri, line] of this.#subscriptions) if (isOpen(line)) this.#subscriptions.delete(uri);
  }

  #note(method: unknown, message: Message, line: string): void {
    const uri = textAt(message.params, "uri");
    if (method === INITIALIZE) this.#initialize = line;
    if (method === LEVEL) this.#level = line;
    if (method === SUBSCRIBE && uri !== undefined) this.#subscriptions.set(uri, line);
    if (method === UNSUBSCRIBE && uri !== undefined) this.#subscriptions.delete(uri);
  }

  #noteSession(fields: unknown): void {
    const sessionId = textAt(fields, "sessionId");
    if (sessionId === undefined || sessionId.length > MAX_ID) return;
    this.#sessions.delete(sessionId);
    this.#sessions.add(sessionId);
    const [oldest] = this.#sessions;
    if (oldest !== undefined && this.#sessions.size > MAX_SESSIONS) this.#sessions.delete(oldest);
  }

  #request(message: Message, id: Id): string {
    this.#requestCount += 1;
    const own = `daemon-${String(this.#requestCount)}`;
    this.#requests.set(own, id);
    return JSON.stringify({ ...message, id: own });
  }

  #notification(message: Message, line: string): string | undefined {
    if (message.method === ACKNOWLEDGED && this.#replayedListens > 0) {
      this.#replayedListens -= 1;
      return undefined;
    }
    if (String(message.method).startsWith(EVENTS)) return this.#event(message, line);
    if (message.method !== CANCELLED) return line;
    const theirs = requestIdOf(message);
    const [own] = [...this.#requests].find(([, id]) => id === theirs) ?? [];
    if (own === undefined) return line;
    this.#requests.delete(own);
    return JSON.stringify({ ...message, params: { ...record(message.params), requestId: own } });
  }

  /** Notes the cursor. Drops the confirmation of a replayed stream, unless it tells of a gap. */
  #event({ method, params }: Message, line: string): string | undefined {
    const id = record(record(params)?.["_meta"])?.[SUBSCRIPTION_ID];
    const stream = isId(id) ? this.#streams.get(keyOf(id)) : undefined;
    if (!stream) return line;
    const cursor = textAt(params, "cursor");
    if (cursor !== undefined) stream.cursor = cursor;
    if (method !== `${EVENTS}active`) return line;
    const isKnown = stream.isReplayed === true && record(params)?.["truncated"] !== true;
    stream.isReplayed = false;
    return isKnown ? undefined : line;
  }

  #answerFor(message: Message, line: string): string | undefined {
    const { id } = message;
    if (!isId(id)) return line;
    const theirs = this.#requests.get(String(id));
    if (theirs === undefined) return undefined;
    this.#requests.delete(String(id));
    return JSON.stringify({ ...message, id: theirs });
  }

  #forget(id: unknown): void {
    if (!isId(id)) return;
    const left = (this.#calls.get(keyOf(id)) ?? 0) - 1;
    if (left > 0) this.#calls.set(keyOf(id), left);
    else this.#calls.delete(keyOf(id));
    this.#listens.delete(keyOf(id));
    this.#streams.delete(keyOf(id));
  }
}

/** Returns the request that continues the stream. Leaves `maxAgeMs` out, which bounds only the backlog of the first request. */
function resumed({ cursor, line }: Stream): string {
  const message = cursor === undefined ? undefined : parse(line);
  if (!message) return line;
  const { maxAgeMs: _, ...params } = record(message.params) ?? {};
  return JSON.stringify({ ...message, params: { ...params, cursor } });
}

/** Returns `undefined` for anything but a JSON object: the daemon reports the fault. */
function parse(line: string): Message | undefined {
  try {
    return record(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function textAt(value: unknown, key: string): string | undefined {
  const found = record(value)?.[key];
  return typeof found === "string" ? found : undefined;
}

/** Treats all other messages with an id as requests, because the daemon reports faults in them. */
function isAnswer({ error = null, method = null, result = null }: Message): boolean {
  return method === null && (result !== null || error !== null);
}

function requestIdOf({ params }: Message): unknown {
  return record(params)?.["requestId"];
}

function isId(value: unknown): value is Id {
  return typeof value === "string" || typeof value === "number";
}

/** Keeps the ids `1` and `"1"` apart. */
function keyOf(id: Id): string {
  return JSON.stringify(id);
}
