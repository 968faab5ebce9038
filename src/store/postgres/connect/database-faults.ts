import { ZodError } from "zod";
import { type DatabaseFault, StoreError } from "../../errors.ts";
import { NewerFormatError } from "../../format.ts";

/** SQLSTATE of the errors that the functions in the schema raise. */
export const [CONFLICT, NEWER] = ["CA001", "CA002"] as const;

export interface Trouble {
  readonly fault: DatabaseFault;
  /** True if another attempt may succeed: a restart, a failover, a lock. */
  readonly isTransient: boolean;
  /** True if nothing of the statement can have been stored. */
  readonly isUndone: boolean;
  /** True if the connection is of no more use. */
  readonly isOfConnection: boolean;
}

type Row = readonly [fault: DatabaseFault, isTransient?: boolean];

/** Faults by SQLSTATE, or by its class: the first two characters. The server has undone the statement. */
const BY_STATE: Readonly<Record<string, Row>> = {
  "25006": ["readonly", true], // read_only_sql_transaction: a standby, perhaps the former primary
  "28": ["denied"], // invalid_authorization_specification
  "3D": ["missing"], // invalid_catalog_name
  "3F": ["corrupt"], // invalid_schema_name
  "40": ["busy", true], // transaction_rollback: serialization_failure, deadlock_detected
  "42501": ["rights"], // insufficient_privilege
  "42P01": ["corrupt"], // undefined_table
  "42703": ["corrupt"], // undefined_column
  "42883": ["corrupt"], // undefined_function
  "53": ["crowded", true], // insufficient_resources: too_many_connections
  "53100": ["full"], // disk_full
  "53200": ["failed", true], // out_of_memory
  "55P03": ["busy", true], // lock_not_available
  "57014": ["busy", true], // query_canceled: statement_timeout
  "57P03": ["down", true], // cannot_connect_now
  [NEWER]: ["newer"],
  XX: ["corrupt"], // internal_error: data_corrupted, index_corrupted
};

/** Faults of connections, by SQLSTATE or its class. The statement may have been stored. */
const OF_CONNECTION: Readonly<Record<string, Row>> = {
  "08": ["down", true], // connection_exception
  "25P03": ["down", true], // idle_in_transaction_session_timeout
  "57P01": ["down", true], // admin_shutdown
  "57P02": ["down", true], // crash_shutdown
  "57P05": ["down", true], // idle_session_timeout
};

/** Codes of Node for a host that cannot be reached, or a broken connection. */
const NETWORK =
  /^(?:EADDRNOTAVAIL|EAI_AGAIN|ECONN\w+|EHOSTDOWN|EHOSTUNREACH|ENET\w+|ENOENT|ENOTFOUND|EPIPE|ETIMEDOUT)$/;
/** Messages of `pg` without a code. */
const BROKEN =
  /^(?:Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered|Client was closed)/;
const TLS = /^(?:CERT_|DEPTH_ZERO|ERR_SSL|ERR_TLS|HOSTNAME_MISMATCH|SELF_SIGNED|UNABLE_TO_)/;

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Returns `undefined` for an error of another cause: a faulty statement, a closed store. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof NewerFormatError) return trouble(["newer"]);
  // The store reads only text of its own, so a parse error means that a table was changed from outside.
  if (error instanceof ZodError || error instanceof SyntaxError) return trouble(["corrupt"]);
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  return isState(code) ? ofServer(code) : ofClient(code, error.message);
}

/** Reads the SQLSTATE of an error that the server has reported. */
function ofServer(state: string): Trouble | undefined {
  const broken = OF_CONNECTION[state] ?? OF_CONNECTION[state.slice(0, 2)];
  if (broken) return { ...trouble(broken), isUndone: false, isOfConnection: true };
  // The caller of a function knows what its own errors mean.
  if (state === CONFLICT) return undefined;
  const undone = BY_STATE[state] ?? BY_STATE[state.slice(0, 2)] ?? (["failed"] as const);
  // Leaves a read-only server, because the name of the host may lead to another one meanwhile.
  return { ...trouble(undone), isOfConnection: state === "25006" };
}

/** Reads an error of Node or of `pg`. */
function ofClient(code: string, message: string): Trouble | undefined {
  if (NETWORK.test(code) || BROKEN.test(message))
    return { fault: "down", isTransient: true, isUndone: false, isOfConnection: true };
  if (TLS.test(code) || message.includes("does not support SSL")) return trouble(["tls"]);
  return message.includes("SASL") ? trouble(["denied"]) : undefined;
}

function isState(code: string): boolean {
  return /^[\dA-Z]{5}$/.test(code) && !NETWORK.test(code);
}

function trouble([fault, isTransient = false]: Row): Trouble {
  return { fault, isTransient, isUndone: true, isOfConnection: false };
}

/** Returns a `StoreError` with advice if the database is at fault, otherwise the error itself. */
export function asDatabaseError(error: unknown, place: string): unknown {
  if (error instanceof StoreError) return error;
  const found = troubleOf(error);
  return found ? new StoreError(found.fault, place, error, "database") : error;
}
