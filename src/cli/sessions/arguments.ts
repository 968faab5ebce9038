import type { ParseArgsConfig } from "node:util";
import { parseOwnFlags } from "../own-flags.ts";
import { ConfigError } from "../../config/error.ts";

/** Reads the arguments of `sessions VERB`, times and counts included. */

/** Settings that locate the store. */
const STORE_FLAGS = {
  store: { type: "string" },
  "store-password-file": { type: "string" },
  config: { type: "string" },
} as const;

export interface StoreFlags {
  readonly store?: string | undefined;
  readonly "store-password-file"?: string | undefined;
  readonly config?: string | undefined;
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * `command` (with its verb) and `words` (the arguments beside flags) are for messages. Throws ConfigError with the list of
 * allowed
 * arguments.
 */
export function readArguments<O extends Options>(
  command: string,
  args: string[],
  { options, words = "" }: { readonly options: O; readonly words?: string },
) {
  return parseOwnFlags(command, args, { options: { ...options, ...STORE_FLAGS }, words });
}

/** Returns the only id in `positionals`. Throws ConfigError for none or several. */
export function oneId(command: string, positionals: readonly string[]): string {
  const [id, ...others] = positionals;
  if (id === undefined || id === "") throw new ConfigError(`${command} needs the id of a session, or its start.`);
  if (others.length > 0) throw new ConfigError(`${command} takes one id, not ${String(positionals.length)}.`);
  return id;
}

export function oneOf<T extends string>(flag: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw new ConfigError(`--${flag} is "${text}": must be one of ${allowed.join(", ")}.`);
  return found;
}

export function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= most) return value;
  throw new ConfigError(`--${flag} is "${text}": must be a whole number from 1 to ${String(most)}.`);
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Returns ms since the epoch for an age (7d, 12h) or a date. */
export function pointInTime(flag: string, text: string, now: number): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  const ago = Number(count) * (UNIT_MS[unit] ?? Number.NaN);
  // `Date.parse` accepts much more than ISO dates, with unexpected results.
  const at = Number.isNaN(ago) && /^\d{4}-\d\d/.test(text) ? Date.parse(text) : now - ago;
  if (!Number.isNaN(at)) return at;
  throw new ConfigError(`--${flag} is "${text}": must be like 30m, 12h, 7d or 2w, or a date like 2026-01-31.`);
}
