import { randomBytes } from "node:crypto";
import type { StoreLocation } from "../../../src/config/store.ts";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import { openStore, type StoreOptions } from "../../../src/store/open.ts";
import type { StoreUnderTest } from "../store/vocabulary.ts";
import type { Database } from "./database.ts";

/** Opens a store as the node `nodeId`. */
export function openPostgres(
  location: StoreLocation & { kind: "postgres" },
  nodeId: string,
  over: Partial<StoreOptions> = {},
): SessionBackend {
  const silent = (): void => undefined;
  return openStore(location, {
    nodeId,
    process: { pid: process.pid, startedAt: "now" },
    isRunning: async () => Promise.resolve(true),
    clock: { now: () => Date.now(), tick: () => performance.now() },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    ...over,
  });
}

/** A store in a schema of its own; a test can connect any number of nodes. Its clock, the database's, is moved by the test. */
export class PostgresStore implements StoreUnderTest {
  readonly schema = `s_${randomBytes(6).toString("hex")}`;
  readonly location: StoreLocation & { kind: "postgres" };
  readonly #database: Database;
  readonly #nodes: SessionBackend[] = [];
  now = 1_000_000;

  constructor(database: Database) {
    this.#database = database;
    const url = `${database.url()}?search_path=${this.schema}`;
    this.location = { kind: "postgres", url, passwordFile: database.passwordFile };
  }

  connect = (nodeId: string, over: Partial<StoreOptions> = {}): SessionBackend => {
    const clock = { now: () => this.now, tick: () => this.now };
    const node = openPostgres(this.location, nodeId, { clock, ...over });
    this.#nodes.push(node);
    return node;
  };

  /** Replaces the function that the store reads the clock of the database with. */
  advance = async (ms: number): Promise<void> => {
    this.now += ms;
    const clock = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${String(this.now - 1_000_000)}`;
    await this.query(`CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT ${clock}'`);
  };

  time = (): number => Date.now() + this.now - 1_000_000;

  /** Lets the lease of one node run out, as if the node had not renewed it. */
  expireLease = async (nodeId: string): Promise<void> => {
    await this.query(`UPDATE nodes SET renewed_at = 0, expires_at = 1 WHERE id = '${nodeId}'`);
  };

  /** Runs statements in the schema, one after the other. Returns rows as lines. */
  query = async (...statements: string[]): Promise<string> =>
    this.#database.query(`SET search_path TO ${this.schema}`, ...statements);

  close = async (): Promise<void> => {
    await Promise.all(this.#nodes.map(async (node) => node.close()));
    await this.#database.query(`DROP SCHEMA IF EXISTS ${this.schema} CASCADE`);
  };
}
