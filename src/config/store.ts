import { z } from "zod";
import { IN_MEMORY, isStoreSpelling } from "./paths.ts";

/**
 * Where sessions are kept. What can be said of it with --store is known here alone: everything behind the configuration has
 * the kind, and the compiler names what serves each of them.
 */
export type StoreLocation =
  /** Sessions end with their server. */
  | { readonly kind: "memory" }
  /** A file, by its absolute path. */
  | { readonly kind: "sqlite"; readonly file: string };

/** As it is said with --store. */
export function storeText(location: StoreLocation): string {
  return location.kind === "memory" ? IN_MEMORY : location.file;
}

export const STORE_ALLOWED = `a path, or ${IN_MEMORY}`;

export const StoreSetting = z
  .string()
  .min(1)
  .refine((text) => !isStoreSpelling(text), {
    error: `write a path without file:, or ${IN_MEMORY} for a store in memory.`,
  })
  .transform((text): StoreLocation => (text === IN_MEMORY ? { kind: "memory" } : { kind: "sqlite", file: text }));
