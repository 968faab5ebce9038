import { setTimeout as sleep } from "node:timers/promises";
import type { Client, ClientBase, Pool, PoolClient } from "pg";
import type { z } from "zod";
import { StoreError } from "../../errors.ts";
import { asDatabaseError, troubleOf } from "./database-faults.ts";
import { clientConfig, loadPostgres, refuseTransactionPooler, setUpClient, targetOf } from "./client-config.ts";
import { prepareSchema } from "./migrate.ts";
import { STEPS } from "./schema-steps.ts";
import type { DatabaseLocation, Target } from "./target.ts";

/** Version of the schema that this server can work with. */
export const VERSION = STEPS.length;
/** Name of the connections in `pg_stat_activity`. */
const NAME = "claude-agents-mcp";
/**
 * Maximum number of connections by use: for statements, and for renewals of the lease, which must not wait behind statements
 * that hang. One more listens.
 */
const POOL_SIZES = { statements: 4, renewals: 1 } as const;
type Lane = keyof typeof POOL_SIZES;
/** Time after which an unused connection is closed, ms. */
const IDLE_MS = 60_000;
/**
 * Time for which a failed statement is repeated, ms: `call` for a write, because owners of sessions repeat their writes
 * themselves (`isOutage`); `reader` for one who waits for changes; `start` before the first connection, because then the
 * settings may be wrong.
 */
const PATIENCE_MS = { call: 10_000, reader: 25_000, start: 3_000 } as const;
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [20, 1_000];

export type Value = string | number | boolean | null | Uint8Array | readonly (string | number | null)[];

export interface StatementTerms {
  /** `false` for a statement that must not run twice: it is repeated only if the first attempt has certainly failed. */
  readonly isRepeatable?: boolean;
  readonly patience?: "call" | "reader";
  /** Time limit of the answer, ms. Once passed, the connection is given up. */
  readonly answerMs?: number;
  readonly lane?: Lane;
  /** Number of attempts; without a number, as many as `patience` allows. */
  readonly attempts?: number;
}

interface Opened {
  readonly client: Client;
  readonly isPooled: boolean;
}

/** Bounded pool of connections to a database. Connects with the first use, and again after a failure. */
export class Database {
  readonly location: DatabaseLocation;
  #target: Target;
  /** Names of prepared statements by their text. */
  readonly #names = new Map<string, string>();
  #opened: Promise<Readonly<Record<Lane, Pool>>> | undefined;
  #hasOpened = false;
  #ending = false;
  #closed = false;
  /** Set once a pooler was found that loses sessions. */
  #refused: StoreError | undefined;

  constructor(location: DatabaseLocation) {
    this.location = location;
    this.#target = targetOf(location);
  }

  get schema(): string {
    return this.#target.schema;
  }

  /** Name of the database in messages. */
  get name(): string {
    return this.#target.name;
  }

  /** Returns all rows. Throws `StoreError` if the database is at fault. */
  async all<T>(
    text: string,
    row: z.ZodType<T>,
    values: readonly Value[] = [],
    terms: StatementTerms = {},
  ): Promise<T[]> {
    return this.#persist(terms, async () => {
      const rows = await this.#run(text, values, terms);
      return rows.map((found) => row.parse(found));
    });
  }

  /** Returns the first row, or `undefined`. */
  async get<T>(
    text: string,
    row: z.ZodType<T>,
    values?: readonly Value[],
    terms?: StatementTerms,
  ): Promise<T | undefined> {
    return (await this.all(text, row, values, terms))[0];
  }

  /** Runs a statement for its effect. */
  async run(text: string, values: readonly Value[] = [], terms: StatementTerms = {}): Promise<void> {
    await this.#persist(terms, async () => void (await this.#run(text, values, terms)));
  }

  /** Opens a connection that is none of the pool's. */
  async connect(name: string): Promise<Client> {
    return (await this.#connect(name)).client;
  }

  /** Refuses everything from now on. */
  refuse(fault: "pooler"): void {
    this.#refused = new StoreError(fault, this.name, undefined, "database");
  }

  assertOpen(): void {
    if (this.#closed) throw new Error("the store is closed");
  }

  /** Repeats no statement any more, so that the end of the server does not wait for a database that is away. */
  stopRepeating(): void {
    this.#ending = true;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const pools = await this.#opened?.catch(() => undefined);
    await Promise.all(Object.values(pools ?? {}).map(async (pool) => pool.end()));
  }

  /** Repeats `attempt` with backoff while the database is away, restarts, or another transaction is in the way. */
  async #persist<T>(
    { attempts, isRepeatable = true, patience = "call" }: StatementTerms,
    attempt: () => Promise<T>,
  ): Promise<T> {
    this.assertOpen();
    const begin = performance.now();
    for (let [wait, n] = [FIRST_WAIT_MS, 1]; ; wait = Math.min(2 * wait, MAX_WAIT_MS), n += 1) {
      try {
        if (this.#refused) throw this.#refused;
        return await attempt();
      } catch (error) {
        const isLate = this.#ending || n === attempts || performance.now() - begin + wait > this.#patienceMs(patience);
        const cause = error instanceof NotStarted ? error.cause : error;
        if (isLate || !mayRepeat(error, isRepeatable)) throw asDatabaseError(cause, this.name);
      }
      // Jitter: servers that were refused together must not retry together.
      await sleep(wait * (0.5 + Math.random()));
    }
  }

  #patienceMs(patience: "call" | "reader"): number {
    return this.#hasOpened ? PATIENCE_MS[patience] : PATIENCE_MS.start;
  }

  async #run(
    text: string,
    values: readonly Value[],
    { answerMs, lane = "statements" }: StatementTerms,
  ): Promise<unknown[]> {
    const client = await this.#take(lane);
    try {
      const query = { text, name: this.#nameOf(text), values: values.map(storable), query_timeout: answerMs };
      const { rows } = await client.query<Record<string, unknown>>(query);
      client.release();
      return rows;
    } catch (error) {
      client.release(troubleOf(error)?.isOfConnection === true || isUnknown(error));
      throw error;
    }
  }

  #nameOf(text: string): string {
    const known = this.#names.get(text) ?? `s${String(this.#names.size)}`;
    this.#names.set(text, known);
    return known;
  }

  async #take(lane: Lane): Promise<PoolClient> {
    const opening = (this.#opened ??= this.#start());
    try {
      const pools = await opening.catch((error: unknown) => {
        if (this.#opened === opening) this.#opened = undefined;
        throw error;
      });
      return await pools[lane].connect();
    } catch (error) {
      throw new NotStarted(error);
    }
  }

  /** Checks the way to the database, prepares the schema, and makes the pools. */
  async #start(): Promise<Readonly<Record<Lane, Pool>>> {
    const { client, isPooled } = await this.#connect(NAME);
    try {
      if (isPooled) await this.#checkPooler(client);
      await prepareSchema(client, this.#target);
    } finally {
      await client.end().catch(() => undefined);
    }
    this.#hasOpened = true;
    return { statements: this.#createPool("statements"), renewals: this.#createPool("renewals") };
  }

  #createPool(lane: Lane): Pool {
    const { Client: Connection, Pool: Connections } = loadPostgres(this.name);
    const setUp: (opened: ClientBase) => unknown = async (opened) => {
      // Without a listener, a connection that breaks while in use would end the process. The statement reports the error.
      opened.on("error", () => undefined);
      await setUpClient(opened, this.schema);
    };
    const pool = new Connections({
      ...clientConfig(this.#target, this.location, NAME),
      Client: Connection,
      max: POOL_SIZES[lane],
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
      onConnect: setUp,
    });
    // A broken idle connection has already left the pool; without a listener the error would end the process.
    pool.on("error", () => undefined);
    return pool;
  }

  /** Goes on without TLS if the server has none, with `prefer` only. */
  async #connect(name: string): Promise<Opened> {
    return this.#open(name).catch(async (error: unknown) => {
      const hasNone = error instanceof Error && error.message.includes("does not support SSL");
      if (this.#target.tlsMode !== "prefer" || !hasNone) throw error;
      this.#target = { ...this.#target, tlsMode: "disable" };
      return this.#open(name);
    });
  }

  async #open(name: string): Promise<Opened> {
    const { Client: Connection } = loadPostgres(this.name);
    const client = new Connection(clientConfig(this.#target, this.location, name));
    client.on("error", () => undefined);
    try {
      await client.connect();
      return { client, isPooled: await setUpClient(client, this.schema) };
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  async #checkPooler(client: Client): Promise<void> {
    const { client: other } = await this.#connect(NAME);
    try {
      await refuseTransactionPooler(client, other, this.name);
    } finally {
      await other.end().catch(() => undefined);
    }
  }
}

/** Thrown for a statement that was never sent. */
class NotStarted extends Error {
  constructor(cause: unknown) {
    super("not started", { cause });
  }
}

/** True if another attempt may succeed, and no attempt before can have been stored unless `isRepeatable`. */
function mayRepeat(error: unknown, isRepeatable: boolean): boolean {
  const isNotStarted = error instanceof NotStarted;
  const trouble = troubleOf(isNotStarted ? error.cause : error);
  return trouble?.isTransient === true && (isRepeatable || isNotStarted || trouble.isUndone);
}

/** True for an error that the server has not reported, after which the state of the connection is unknown. */
function isUnknown(error: unknown): boolean {
  return !(error instanceof Error && "severity" in error);
}

/** PostgreSQL stores no NUL. JSON has none, because JSON escapes NUL; only texts that are sought can have one. */
function storable(value: Value): Value {
  if (typeof value === "string") return value.includes("\0") ? value.replaceAll("\0", "\ufffd") : value;
  return Array.isArray(value)
    ? value.map((each: string | number | null) => (typeof each === "string" ? String(storable(each)) : each))
    : value;
}
