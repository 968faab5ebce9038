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
  /** Absolute path of a file. */
  | { readonly kind: "sqlite"; readonly file: string };

export interface StoreTraits {
  /** Value of `--store`. */
  readonly text: string;
  /** Absolute path of the SQLite file: closed to sessions, and to be kept on a local disk. */
  readonly file?: string;
  /** True if sessions outlive their server and are visible to others. */
  readonly isShared: boolean;
}

export function storeTraits(location: StoreLocation): StoreTraits {
  const { isShared } = SPELLINGS[location.kind];
  switch (location.kind) {
    case "memory":
      return { text: MEMORY, isShared };
    case "sqlite":
      return { text: location.file, file: location.file, isShared };
  }
}

/** Returns the location without `--store`. `folder` is the state folder. */
export function defaultStore(folder: string, platform: NodeJS.Platform): StoreLocation & { readonly file: string } {
  return { kind: "sqlite", file: (platform === "win32" ? win32 : posix).join(folder, STORE_FILE) };
}

export const STORE_ALLOWED = `a path, or ${MEMORY}`;

/** Expects paths to be absolute already. */
export const StoreSetting = z
  .string()
  .min(1)
  .transform((text, context): StoreLocation => {
    const kind = storeKindOf(text);
    if (kind !== undefined) return locationOf(kind, text);
    const message = `write a path without file: or another scheme, or ${MEMORY} for a store in memory.`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

function locationOf(kind: StoreKind, text: string): StoreLocation {
  switch (kind) {
    case "memory":
      return { kind };
    case "sqlite":
      return { kind, file: text };
  }
}
