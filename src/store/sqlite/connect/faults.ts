import { ZodError } from "zod";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError, type FileFault } from "../../errors.ts";
import { NewerFormatError } from "../../format.ts";
import { sqliteCode, isBusy } from "./driver.ts";

/** Faults by SQLite's extended result code if more specific, else by the primary code, the low byte. */
const BY_CODE: Readonly<Record<number, FileFault>> = {
  3: "readonly", // PERM
  5: "busy", // BUSY
  6: "busy", // LOCKED
  8: "readonly", // READONLY
  11: "corrupt", // CORRUPT
  13: "full", // FULL
  14: "readonly", // CANTOPEN
  26: "corrupt", // NOTADB
  1032: "moved", // READONLY_DBMOVED
  4874: "full", // IOERR_SHMSIZE: no room for the index of the log
};

/** Faults by error codes of the file system, before SQLite is asked. */
const BY_NAME: Readonly<Record<string, FileFault>> = {
  EACCES: "readonly",
  EDQUOT: "full",
  EEXIST: "readonly",
  EISDIR: "readonly",
  ELOOP: "readonly",
  ENOENT: "readonly",
  ENOSPC: "full",
  ENOTDIR: "readonly",
  EPERM: "readonly",
  EROFS: "readonly",
};

/** Returns a `StoreError` with advice if the store is at fault; `undefined` for an error of another cause. */
export function asStoreError(error: unknown, file: string): StoreError | undefined {
  if (error instanceof StoreError) return error;
  const fault = faultOf(error);
  return fault && new StoreError(fault, file, error);
}

function faultOf(error: unknown): FileFault | undefined {
  if (error instanceof NewerFormatError) return "newer";
  // The store reads only text of its own, so a parse error means that the file was changed from outside.
  if (error instanceof ZodError || error instanceof SyntaxError) return "corrupt";
  const code = sqliteCode(error);
  if (code !== undefined) return BY_CODE[code] ?? BY_CODE[code & 0xff] ?? "failed";
  const name = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof name === "string" ? BY_NAME[name] : undefined;
}

/** Total time of retries, ms. SQLite's own `busy_timeout` is short, because it blocks the event loop. */
const MAX_RETRY_MS = 10_000;
const [FIRST_WAIT_MS, MAX_WAIT_MS] = [4, 100];

/** Retries with backoff while another connection holds the lock. Throws the busy error after `MAX_RETRY_MS`. */
export async function retryWhileBusy<T>(attempt: () => T | Promise<T>): Promise<T> {
  const deadline = performance.now() + MAX_RETRY_MS;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
    // Jitter: connections that were refused together must not retry together.
    await sleep(wait * (0.5 + Math.random()));
  }
}
