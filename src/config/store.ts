import { posix, win32 } from "node:path";
import { z } from "zod";
import { MEMORY, SPELLINGS, STORE_FILE, storeKindOf, type StoreKind } from "./store-spelling.ts";

/**
 * Where sessions are kept. The kinds are listed in store-spelling.ts. Only that file, this one and `openStore` (store/open.ts)
 * tell them apart, and none compiles without one of them; all other code reads `storeTraits`.
 */
export type StoreLocation =
  /** Sessions end with their server. */
  | { readonly kind: "memory" }
  /** A file, by its absolute path. */
  | { readonly kind: "sqlite"; readonly file: string };

export interface StoreTraits {
  /** As it is said with --store. */
  readonly text: string;
  /** What no session may touch, and what needs a local disk: the SQLite file of the sessions, by its absolute path. */
  readonly file?: string;
  /** Sessions outlive their server, and other servers see them. */
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

/** The location without `--store`. `folder` is the state folder. */
export function defaultStore(folder: string, platform: NodeJS.Platform): StoreLocation & { readonly file: string } {
  return { kind: "sqlite", file: (platform === "win32" ? win32 : posix).join(folder, STORE_FILE) };
}

export const STORE_ALLOWED = `a path, or ${MEMORY}`;

/** A path is absolute by now. */
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
