import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { z } from "zod";
import { MEMORY, SPELLINGS, STORE_FILE, storeKindOf, type StoreKind } from "./store-spelling.ts";

/**
 * Location of the sessions. Kinds are told apart only in `store-spelling.ts`, here and in `openStore`; a kind missing there
 * does not compile. All other code reads `storeTraits`.
 */
export type StoreLocation =
  /** Sessions end with their server. */
  | { readonly kind: "memory" }
  /** URL without a password. `passwordFile` is an absolute path; without it, the user's password file counts. */
  | { readonly kind: "postgres"; readonly url: string; readonly passwordFile?: string | undefined }
  /** Absolute path of a file. */
  | { readonly kind: "sqlite"; readonly file: string };

export interface StoreTraits {
  /** Value of `--store`, free of secrets. */
  readonly text: string;
  /** Equal for all servers of the store that is `text`, but for links to a file. */
  readonly identity: string;
  /** Absolute path of the SQLite file: closed to sessions, and to be kept on a local disk. */
  readonly file?: string;
  /** True if sessions outlive their server and are visible to others. */
  readonly isShared: boolean;
}

export function storeTraits(location: StoreLocation): StoreTraits {
  const { isShared } = SPELLINGS[location.kind];
  switch (location.kind) {
    case "memory":
      return { text: MEMORY, identity: MEMORY, isShared };
    case "postgres":
      return { text: location.url, identity: databaseOf(location.url), isShared };
    case "sqlite":
      return { text: location.file, identity: location.file, file: location.file, isShared };
  }
}

/** Returns the file with the password of a PostgreSQL store; `undefined` for other stores. */
export function storePasswordFile(
  location: StoreLocation,
  { APPDATA, HOME = homedir(), PGPASSFILE }: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (location.kind !== "postgres") return undefined;
  const ofUser = APPDATA === undefined ? posix.join(HOME, ".pgpass") : win32.join(APPDATA, "postgresql/pgpass.conf");
  return location.passwordFile ?? PGPASSFILE ?? ofUser;
}

/** Returns host, port, database and schema: servers may connect as different users, and with different parameters. */
function databaseOf(url: string): string {
  const { hostname, pathname, port, searchParams } = new URL(url);
  const host = hostname === "" ? (searchParams.get("host") ?? "localhost") : hostname;
  const schema = searchParams.get("search_path");
  return `postgres://${host}:${port === "" ? "5432" : port}${pathname}${schema === null ? "" : `/${schema}`}`;
}

/** True if servers on several machines share the store, each as a node. */
export function isOfMachines(location: StoreLocation): boolean {
  const { file, isShared } = storeTraits(location);
  return isShared && file === undefined;
}

/** Returns the location without `--store`. `folder` is the state folder. */
export function defaultStore(folder: string, platform: NodeJS.Platform): StoreLocation & { readonly file: string } {
  return { kind: "sqlite", file: (platform === "win32" ? win32 : posix).join(folder, STORE_FILE) };
}

export const STORE_ALLOWED = `a path, postgres://USER@HOST/DATABASE, or ${MEMORY}`;

/** Expects paths to be absolute already. */
export const StoreSetting = z
  .string()
  .min(1)
  .transform((text, context): StoreLocation => {
    const kind = storeKindOf(text);
    const problem = kind && SPELLINGS[kind].problem?.(text);
    if (kind !== undefined && problem === undefined) return locationOf(kind, text);
    const message = `write a path without file: or another scheme, postgres://... for PostgreSQL, or ${MEMORY} for a store in memory.`;
    context.addIssue({ code: "custom", message: problem ?? message });
    return z.NEVER;
  });

function locationOf(kind: StoreKind, text: string): StoreLocation {
  switch (kind) {
    case "memory":
      return { kind };
    case "postgres":
      return { kind, url: text };
    case "sqlite":
      return { kind, file: text };
  }
}
