import { z } from "zod";
import { IN_MEMORY, isStoreSpelling } from "./paths.ts";

/**
 * Where sessions are kept. Only this file and `openStore` (store/open.ts) tell the kinds apart, and neither compiles without one
 * of them; all other code reads `storeTraits`.
 */
export type StoreLocation =
  /** Sessions end with their server. */
  | { readonly kind: "memory" }
  /** A file, by its absolute path. */
  | { readonly kind: "sqlite"; readonly file: string };

export interface StoreTraits {
  /** As it is said with --store. */
  readonly text: string;
  /** What no session may touch: the file that holds the sessions, by its absolute path. */
  readonly file?: string;
  /** Sessions outlive their server, and other servers see them. */
  readonly isShared: boolean;
}

export function storeTraits(location: StoreLocation): StoreTraits {
  switch (location.kind) {
    case "memory":
      return { text: IN_MEMORY, isShared: false };
    case "sqlite":
      return { text: location.file, file: location.file, isShared: true };
  }
}

export const STORE_ALLOWED = `a path, or ${IN_MEMORY}`;

export const StoreSetting = z
  .string()
  .min(1)
  .refine((text) => !isStoreSpelling(text), {
    error: `write a path without file:, or ${IN_MEMORY} for a store in memory.`,
  })
  .transform((text): StoreLocation => (text === IN_MEMORY ? { kind: "memory" } : { kind: "sqlite", file: text }));
