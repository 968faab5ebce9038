import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, inject } from "vitest";
import type { PostgresServer } from "../../../scripts/postgres-cluster.mjs";

declare module "vitest" {
  interface ProvidedContext {
    /** Server started by scripts/start-postgres.mjs; `undefined` if POSTGRES=skip. */
    postgres: PostgresServer | undefined;
  }
}

const run = promisify(execFile);

/** User of the tests, who may do no more than the owner of a database. */
const OWNER = "agents";

/** Skips the tests if POSTGRES=skip, otherwise `describe`. */
export const describePostgres = inject("postgres") === undefined ? describe.skip : describe;

/** An empty database on a server that others may use. */
export class Database {
  readonly name: string;
  /** Private file with the password of the user in `url`. */
  readonly passwordFile: string;
  readonly #server: PostgresServer;
  readonly #folder: string;

  private constructor(server: PostgresServer, name: string, folder: string) {
    this.name = name;
    this.passwordFile = join(folder, "password");
    this.#server = server;
    this.#folder = folder;
  }

  /** By default on the server for all tests. A copy of `template` that nobody is connected to, otherwise empty. */
  static async create(server = inject("postgres")!, template = "template1"): Promise<Database> {
    const name = `t_${randomBytes(6).toString("hex")}`;
    const folder = await mkdtemp(join(tmpdir(), "ccm-database-"));
    const database = new Database(server, name, folder);
    await writeFile(database.passwordFile, `${server.password}\n`, { mode: 0o600 });
    await database.manage(`SELECT pg_advisory_lock(1)`, createOwner(server.password));
    await database.manage(`CREATE DATABASE ${name} OWNER ${OWNER} TEMPLATE ${template}`);
    return database;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Without the password. `port` is that of a proxy; by default the server's. */
  url(port = this.port): string {
    return `postgres://${OWNER}@127.0.0.1:${String(port)}/${this.name}`;
  }

  /** Port and user of the server, for a program between. */
  get login(): { readonly port: number; readonly user: string; readonly password: string } {
    return { port: this.#server.port, user: OWNER, password: this.#server.password };
  }

  /** Arguments of `serve`. */
  flags(port?: number): string[] {
    return ["--store", this.url(port), "--store-password-file", this.passwordFile];
  }

  /** Runs statements in the database, each in a transaction of its own. Returns rows as lines, fields separated by `|`. */
  async query(...statements: string[]): Promise<string> {
    return this.#psql(this.name, OWNER, statements);
  }

  /** Runs statements that only the user of the server may. */
  async manage(...statements: string[]): Promise<string> {
    return this.#psql("postgres", this.#server.user, statements);
  }

  async #psql(name: string, user: string, statements: readonly string[]): Promise<string> {
    const { bin, password, port } = this.#server;
    const place = ["-h", "127.0.0.1", "-p", String(port), "-U", user, "-d", name];
    const env = { PATH: process.env["PATH"], PGPASSWORD: password, PGCONNECT_TIMEOUT: "10" };
    const psql = join(bin, "psql");
    const running = run(psql, ["-XqAt", "-v", "ON_ERROR_STOP=1", ...place], { env, maxBuffer: 1e8 });
    running.child.stdin?.end(statements.map((each) => `${each};\n`).join(""));
    return (await running).stdout.trim();
  }

  /** Makes all later transactions fail that write, as on a standby. Ends present connections with `disconnect`. */
  async setReadOnly(isReadOnly: boolean): Promise<void> {
    await this.manage(`ALTER DATABASE ${this.name} SET default_transaction_read_only = ${isReadOnly ? "on" : "off"}`);
    await this.disconnect();
  }

  /** Sets the maximum number of connections, -1 for no maximum. Present connections stay. */
  async limitConnections(most: number): Promise<void> {
    await this.manage(`ALTER DATABASE ${this.name} CONNECTION LIMIT ${String(most)}`);
  }

  /** Ends connections whose row in `pg_stat_activity` satisfies `where`. Returns their number. */
  async disconnect(where = "true"): Promise<number> {
    const rows = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${this.name}' AND (${where})`;
    return (await this.manage(rows)).split("\n").filter((line) => line === "t").length;
  }

  /** Ends all connections. */
  async drop(): Promise<void> {
    await this.manage(`DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Creates the user of the tests. Idempotent: the lock keeps files of tests apart. */
function createOwner(password: string): string {
  const create = `CREATE ROLE ${OWNER} LOGIN PASSWORD '${password}'`;
  return `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${OWNER}') THEN ${create}; END IF; END $$`;
}

/** Gives the tests of a file an empty database. Call inside `describePostgres`. */
export function useDatabase(): () => Database {
  let database: Database | undefined;
  beforeAll(async () => void (database = await Database.create()));
  afterAll(async () => database?.drop());
  return () => database!;
}
