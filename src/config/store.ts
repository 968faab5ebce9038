import { z } from "zod";

/**
 * Where sessions are kept. What can be said of it with --store is known here alone: everything behind the configuration has
 * the kind, and the compiler names what serves each of them.
 */
export type StoreLocation =
  /** Sessions end with their server. */
  | { readonly kind: "memory" }
  /** A file, by its absolute path. */
  | { readonly kind: "sqlite"; readonly file: string };

const IN_MEMORY = "memory:";

/** As it is said with --store. */
export function storeText(location: StoreLocation): string {
  return location.kind === "memory" ? IN_MEMORY : location.file;
}

export const STORE_ALLOWED = `a path, or ${IN_MEMORY}`;

/** Spellings of SQLite: taken for a path, each would create a file of this name. */
const OTHER_SPELLING = /^(?::memory:$|file:)/i;

/** Whether the text names a file: then it is made absolute before it gets to the schema. */
export function isStoreFile(text: string): boolean {
  return text !== IN_MEMORY && !OTHER_SPELLING.test(text.trim());
}

export const StoreSetting = z
  .string()
  .min(1)
  .refine((text) => !OTHER_SPELLING.test(text.trim()), {
    error: `write a path without file:, or ${IN_MEMORY} for a store in memory.`,
  })
  .transform((text): StoreLocation => (text === IN_MEMORY ? { kind: "memory" } : { kind: "sqlite", file: text }));
