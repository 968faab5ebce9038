import { isStorePath } from "./store-spelling.ts";

/** Checks settings without schemas, for the proxy. */

/** Conversion of the text of a flag or variable to the JSON value of a file. */
export type Reading = "number" | "boolean" | "text" | "words" | "path" | "directories" | "store" | "json";

/**
 * Owner of a setting.
 * - `term`: a connection; clients of a server may differ.
 * - `server`: all sessions of a server, so clients of a daemon cannot give it.
 * - `client`: the client's own process, before it connects.
 */
export type SettingClass = "term" | "server" | "client";

/** Checks beside `Reading`. A text, a path or a word is never empty. */
export interface ByHand {
  readonly least?: number;
  readonly most?: number;
  /** Only allowed values or words. */
  readonly values?: readonly string[];
  /** Regular expression for texts. */
  readonly form?: string;
  /** True if no two words may be equal up to a colon. */
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
