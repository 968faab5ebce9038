import type { Client } from "pg";
import { setTimeout as sleep } from "node:timers/promises";
import type { Topic } from "../session-watch.ts";
import type { Database } from "./connect/database.ts";
import { backendPid, type TimedQuery } from "./connect/client-config.ts";

/**
 * Hints of changes from node to node, by LISTEN and NOTIFY. A hint has ids only, and may be lost: readers then find the change by
 * looking. A node sends at most one notification in `SEND_MS`, because all commits with a notification wait for one lock.
 */
const SEND_MS = 25;
/** Limit of PostgreSQL for a notification, bytes, with room to spare. */
const MAX_PAYLOAD = 7_900;
/** Interval of signs of life on the connection that listens, and the time limit of each, ms. */
const [ALIVE_MS, ANSWER_MS] = [10_000, 5_000];
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [1_000, 30_000];

/** Stands for all sessions, if there are too many to name. */
const ALL = "*";
const CODES: Readonly<Record<Topic, string>> = { commands: "c", feed: "f", log: "l", offers: "o", replies: "r" };
const TOPICS = new Map<string | undefined, Topic>([
  ["c", "commands"],
  ["f", "feed"],
  ["l", "log"],
  ["o", "offers"],
  ["r", "replies"],
]);

const sql = {
  notify: "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)",
  alive: `SELECT pg_backend_pid() AS pid, EXISTS (SELECT 1 FROM pg_listening_channels() c WHERE c = $1) AS listens`,
} as const;

interface Receiver {
  /** Called with each change by another node; without arguments if any may have been missed. */
  readonly onHint: (sessionId?: string, topic?: Topic) => void;
}

export class Hints {
  readonly #db: Database;
  readonly #nodeId: string;
  readonly #receiver: Receiver;
  readonly #waiting = new Set<string>();
  readonly #end = new AbortController();
  #sender: Promise<void> | undefined;
  #listening: Promise<void> | undefined;

  constructor(db: Database, nodeId: string, receiver: Receiver) {
    this.#db = db;
    this.#nodeId = nodeId.replaceAll(/[^\w-]/g, "");
    this.#receiver = receiver;
  }

  /** Tells the other nodes of a change by this node. Does not wait. */
  send(sessionId: string, topics: readonly Topic[]): void {
    const isPlain = /^[\w-]*$/.test(sessionId);
    for (const topic of topics) this.#waiting.add(isPlain ? CODES[topic] + sessionId : ALL);
    this.#sender ??= this.#sendWaiting().finally(() => (this.#sender = undefined));
  }

  /** Begins to listen, once. */
  listen(): void {
    this.#listening ??= this.#listen();
  }

  /** Resolves once the last hints are sent and nothing listens. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#sender;
    await this.#listening;
  }

  async #sendWaiting(): Promise<void> {
    while (this.#waiting.size > 0) {
      // Batches all changes of this event-loop turn.
      await new Promise(setImmediate);
      const names = [...this.#waiting].join(" ");
      this.#waiting.clear();
      const payload = `${this.#nodeId} ${names.length > MAX_PAYLOAD ? ALL : names}`;
      await this.#db.run(sql.notify, [this.#db.schema, payload], { attempts: 1 }).catch(() => undefined);
      await sleep(SEND_MS, undefined, { signal: this.#end.signal, ref: false }).catch(() => undefined);
    }
  }

  async #listen(): Promise<void> {
    const { signal } = this.#end;
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
      const begin = performance.now();
      await this.#listenOnce().catch(() => undefined);
      if (performance.now() - begin > MAX_WAIT_MS) wait = FIRST_WAIT_MS;
      await sleep(wait * (0.5 + Math.random()), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Listens until the connection breaks or does not answer in time. */
  async #listenOnce(): Promise<void> {
    const client = await this.#db.connect("claude-agents-mcp listener");
    try {
      client.on("notification", ({ payload = "" }) => this.#receive(payload));
      const before = backendPid(await client.query("SELECT pg_backend_pid() AS pid"));
      await client.query(`LISTEN "${this.#db.schema}"`);
      // Changes since the last connection are found by looking.
      this.#receiver.onHint();
      while (await this.#isAlive(client, before));
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async #isAlive(client: Client, before: unknown): Promise<boolean> {
    const { signal } = this.#end;
    const over = new AbortController();
    const stop = (): void => over.abort();
    if (signal.aborted) stop();
    client.once("end", stop);
    signal.addEventListener("abort", stop);
    await sleep(ALIVE_MS, undefined, { signal: over.signal, ref: false }).catch(() => undefined);
    client.off("end", stop);
    signal.removeEventListener("abort", stop);
    if (over.signal.aborted) return false;
    const query: TimedQuery = { text: sql.alive, values: [this.#db.schema], query_timeout: ANSWER_MS };
    const found = await client.query<{ pid: number; listens: boolean }>(query);
    const [row] = found.rows;
    if (row?.pid === before && row?.listens === true) return true;
    this.#db.refuse("pooler");
    return false;
  }

  #receive(payload: string): void {
    const [nodeId, ...names] = payload.split(" ");
    if (nodeId === this.#nodeId) return;
    for (const name of names) {
      const topic = TOPICS.get(name[0]);
      if (topic) this.#receiver.onHint(name.slice(1), topic);
      else this.#receiver.onHint();
    }
  }
}
