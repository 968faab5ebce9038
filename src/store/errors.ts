import { AppError } from "../domain/error.ts";

/** Messages for the faults of a store: the problem, then the remedy. */
const MESSAGES = {
  busy: (file: string) =>
    `The store ${file} is locked by another process. End what holds it (a backup, a database tool, a stopped server) and try again.`,
  corrupt: (file: string) =>
    `The store ${file} is damaged. Restore it from a backup, or move it away together with its -wal and -shm files: then a new one is created.`,
  driver: (file: string) =>
    `The store ${file} cannot be opened: there is no SQLite. Use Node 22.13 or later, or run: claude-agents-mcp doctor --fix`,
  failed: (file: string) => `The store ${file} could not be read or written. Check the disk and try again.`,
  foreign: (file: string) =>
    `${file} is a database of another program. Name another file with --store or CLAUDE_CODE_MCP_STORE.`,
  full: (file: string) => `The disk of the store ${file} is full: nothing was saved. Free some space and try again.`,
  moved: (file: string) =>
    `The store ${file}, or ${file}-wal or ${file}-shm, was moved, replaced or deleted while it was in use: what was stored last may be missing. End all servers of this store and start again; leave its files alone while one runs.`,
  network: (file: string) =>
    `The store ${file} is on a network file system, where it cannot be kept safely. Name a file on a local disk with --store or CLAUDE_CODE_MCP_STORE.`,
  newer: (file: string) =>
    `The store ${file} was changed by a newer claude-agents-mcp than this one can work with. Update claude-agents-mcp.`,
  readonly: (file: string) =>
    `The store ${file} cannot be written. Make the file and its folder writable, or name another file with --store or CLAUDE_CODE_MCP_STORE.`,
} as const;

/** Messages for the faults of a database. `place` names host, port and database. */
const DATABASE_MESSAGES = {
  busy: (place: string) =>
    `The database ${place} was too slow, or a lock was held too long. Look for long transactions in pg_stat_activity and try again.`,
  corrupt: (place: string) =>
    `Tables of the database ${place} are missing or damaged. Restore the database from a backup, or name an empty one with --store.`,
  crowded: (place: string) =>
    `The database ${place} has no free connection. Raise max_connections or the limit of the user: each server takes up to 6 connections.`,
  denied: (place: string) =>
    `The database ${place} refuses the user. Check the user in the URL, and the password in --store-password-file or in your password file.`,
  down: (place: string) =>
    `The database ${place} does not answer. Check that PostgreSQL runs and can be reached, and try again.`,
  driver: (place: string) =>
    `The database ${place} cannot be used: the package pg is not installed. Run: claude-agents-mcp doctor --fix`,
  encoding: (place: string) =>
    `The database ${place} cannot hold every text. Create one with ENCODING 'UTF8', and name it with --store.`,
  failed: (place: string) =>
    `The database ${place} could not carry out a statement. Look at the log of PostgreSQL and try again.`,
  foreign: (place: string) =>
    `The schema in the database ${place} belongs to another program. Name another schema: --store postgres://...?search_path=NAME`,
  full: (place: string) =>
    `The disk of the database ${place} is full: nothing was saved. Free some space and try again.`,
  missing: (place: string) => `There is no database ${place}. Create it, or name another one with --store.`,
  newer: (place: string) =>
    `The database ${place} was changed by a newer claude-agents-mcp than this one can work with. Update claude-agents-mcp.`,
  pooler: (place: string) =>
    `Between this server and the database ${place} is a pooler that shares connections by transaction, so notifications and settings of a session are lost. Connect to PostgreSQL directly, or to a pooler in session mode.`,
  readonly: (place: string) =>
    `The database ${place} cannot be written: it is a standby, or read-only. Connect to the primary, or make the database writable.`,
  rights: (place: string) =>
    `The user of the database ${place} may not do what the store needs. Make the user the owner of the database, or grant CREATE on it.`,
  tls: (place: string) =>
    `The database ${place} cannot be reached over TLS. Check its certificate; the URL takes ?sslmode= and ?sslrootcert=.`,
  url: (place: string) => `The URL of the database ${place} cannot be used. Correct --store.`,
} as const;

export type FileFault = keyof typeof MESSAGES;
export type DatabaseFault = keyof typeof DATABASE_MESSAGES;

/** Faults that pass by themselves, as in a failover. */
const OUTAGES: ReadonlySet<string> = new Set<DatabaseFault>(["busy", "crowded", "down", "readonly"]);
const LOSSES: ReadonlySet<string> = new Set<FileFault>(["moved", "newer"]);

/** Thrown if the store cannot carry out an operation. Nothing of the operation is stored, except in an outage. */
export class StoreError extends AppError {
  readonly fault: FileFault | DatabaseFault;
  /** True if earlier data may be missing, or may no longer be changed by this server. */
  readonly isLoss: boolean;
  /** True if the database cannot be reached at present. The operation may have been stored all the same. */
  readonly isOutage: boolean;

  constructor(fault: FileFault, file: string, cause?: unknown);
  constructor(fault: DatabaseFault, place: string, cause: unknown, kind: "database");
  constructor(fault: FileFault | DatabaseFault, place: string, cause?: unknown, kind: "database" | "file" = "file") {
    const why = cause instanceof Error && cause.message !== "" ? ` (${cause.message})` : "";
    const messages: Readonly<Partial<Record<string, (where: string) => string>>> =
      kind === "file" ? MESSAGES : DATABASE_MESSAGES;
    super("INTERNAL", `${messages[fault]?.(place) ?? ""}${why}`, { cause });
    this.fault = fault;
    this.isLoss = LOSSES.has(fault);
    this.isOutage = kind === "database" && OUTAGES.has(fault);
  }
}
