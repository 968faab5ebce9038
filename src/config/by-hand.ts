import { isStorePath } from "./store-spelling.ts";

/** Checks values of settings without schemas, for the proxy, which loads none. */

/** Conversion of a text from a flag or a variable to the value that a file would hold as JSON. */
export type Reading = "number" | "boolean" | "text" | "words" | "path" | "directories" | "store" | "json";

/**
 * Who a setting belongs to: `term` to one connection, which may differ from the others of its server; `server` to all sessions of a
 * server, so that no client of a daemon may give it; `client` to the client's own process, which reads it before it connects.
 */
export type SettingClass = "term" | "server" | "client";

/** All that a schema asks of a value, beside its reading. A text, a path or a word is never empty. */
export interface ByHand {
  readonly least?: number;
  readonly most?: number;
  /** The only values, or words, that are allowed. */
  readonly values?: readonly string[];
  /** A regular expression that texts match. */
  readonly form?: string;
  /** Words that are equal up to a colon do not occur twice. */
  readonly isOnceEach?: boolean;
}

export function isAllowed(reading: Reading, byHand: ByHand, value: unknown): boolean {
  switch (reading) {
    case "number":
      return isWithin(byHand, value);
    case "boolean":
      return typeof value === "boolean";
    case "text":
    case "path":
      return isText(byHand, value);
    case "store":
      return isText(byHand, value) && isStorePath(String(value));
    case "words":
    case "directories":
      return Array.isArray(value) && areWords(byHand, value);
    case "json":
      return false;
  }
}

function isWithin({ least = -Infinity, most = Infinity }: ByHand, value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
}

function isText({ form = "", values }: ByHand, value: unknown): boolean {
  if (typeof value !== "string" || value === "" || !new RegExp(form).test(value)) return false;
  return values?.includes(value) ?? true;
}

function areWords(byHand: ByHand, words: readonly unknown[]): boolean {
  if (!words.every((word) => isText(byHand, word))) return false;
  if (words.length === 0) return byHand.values === undefined;
  const names = new Set(words.map((word) => String(word).split(":")[0]));
  return !byHand.isOnceEach || names.size === words.length;
}
