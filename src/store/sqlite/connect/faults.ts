import { ZodError } from "zod";
import { StoreError, type StoreFault } from "../../errors.ts";
import { NewerFormatError } from "../../format.ts";
import { sqliteCode } from "./driver.ts";

/** By SQLite's extended result code where that tells more, else by its primary code, the low byte. */
const BY_CODE: Readonly<Record<number, StoreFault>> = {
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

/** Of the file system, before SQLite is asked. */
const BY_NAME: Readonly<Record<string, StoreFault>> = {
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

/** The error in words that a caller can act upon, when it is the store's; undefined when it is another's. */
export function asStoreError(error: unknown, file: string): StoreError | undefined {
  if (error instanceof StoreError) return error;
  const fault = faultOf(error);
  return fault && new StoreError(fault, file, error);
}

function faultOf(error: unknown): StoreFault | undefined {
  if (error instanceof NewerFormatError) return "newer";
  // What the store reads was written by itself: it does not parse only when the file was changed behind its back.
  if (error instanceof ZodError || error instanceof SyntaxError) return "corrupt";
  const code = sqliteCode(error);
  if (code !== undefined) return BY_CODE[code] ?? BY_CODE[code & 0xff] ?? "failed";
  const name = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof name === "string" ? BY_NAME[name] : undefined;
}
