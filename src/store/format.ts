import { z } from "zod";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import type { SessionEvent } from "../domain/event.ts";
import { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { SessionState } from "../domain/session.ts";

/**
 * JSON format of stored sessions, common to all stores. Each text carries a version; a text of an older version is upgraded
 * when read. `Format` makes no other check against the current schemas, so that additions of a newer server are kept.
 */

interface StoredTypes {
  state: SessionState;
  options: SessionOptions;
  policy: SessionPolicy;
  event: SessionEvent;
}

/** Upgrades `old` by one version, without changing `old`. */
type Upgrade = (old: JsonObject) => JsonObject;

/**
 * Upgrades to a version, by stored type. An upgrade leaves existing fields alone: an older server that shares the store keeps
 * unknown fields, and writes them back under its own version.
 */
export interface Version extends Partial<Readonly<Record<keyof StoredTypes, Upgrade>>> {
  /** Set if servers of the previous version cannot work with data of this version. */
  readonly breaks?: true;
}

/**
 * Versions of the format. Number n upgrades from n - 1; the first upgrades nothing. `UPDATE_ROWS=1` writes the rows and the
 * shape of a new version as files, which test/unit/store-format.test.ts reads from then on. Never change a released version.
 * Change an unreleased version in place, delete its two files and write them again.
 */
export const VERSIONS: readonly Version[] = [
  // 0.1.0
  {},
];

/** Thrown for data of a newer server that this server cannot work with. */
export class NewerFormatError extends Error {
  override readonly name = "NewerFormatError";
}

export interface Format<T> {
  /** Throws `TypeError` for a value without JSON form: a cycle, a bigint. */
  write(value: T): string;
  /** Returns a fresh copy each time. Throws `NewerFormatError`. */
  read(text: string): T;
}

export function createFormat<K extends keyof StoredTypes>(part: K, versions = VERSIONS): Format<StoredTypes[K]> {
  const present = versions.length;
  const oldestReader = versions.findLastIndex(({ breaks }) => breaks) + 1;
  const header = `{"v":${String(present)},${oldestReader > 0 ? `"needs":${String(oldestReader)},` : ""}`;
  // Skips validation: a text of the current version was written from a `StoredTypes[K]`, and `versions` upgrade older texts.
  // Tests with rows of all versions check both.
  const parse: (text: string) => StoredTypes[K] = JSON.parse;
  const typed = z.custom<StoredTypes[K]>();
  return {
    // Prepends the version to the text and removes the version on reading (no value is `{}`): copying the object would cost as
    // much as serializing it.
    write: (value) => header + JSON.stringify(value).slice(1),
    read: (text) =>
      text.startsWith(header)
        ? parse(`{${text.slice(header.length)}`)
        : typed.parse(upgradeValue(part, JsonObject.parse(JSON.parse(text)), versions)),
  };
}

function upgradeValue(
  part: keyof StoredTypes,
  { needs = 0, v, ...value }: JsonObject,
  versions: readonly Version[],
): JsonObject {
  if (typeof v !== "number" || typeof needs !== "number") throw new SyntaxError(`a version of ${part} is not a number`);
  if (needs > versions.length) throw new NewerFormatError(newerMessage(part, needs, versions.length));
  return versions.slice(v).reduce((old, { [part]: upgrade }) => upgrade?.(old) ?? old, value);
}

function newerMessage(part: string, needed: number, present: number): string {
  const problem = `a session's ${part} needs format version ${String(needed)}, and this claude-agents-mcp reads up to version ${String(present)}`;
  return `${problem}. Update claude-agents-mcp.`;
}

export const STATE = createFormat("state");
export const OPTIONS = createFormat("options");
export const POLICY = createFormat("policy");
export const EVENT = createFormat("event");

/**
 * Returns the path of the first field of `value` with another type than in `schema`; `undefined` if there is none. Accepts
 * unknown fields, enum values and union members, which a newer server may have written.
 */
export function faultIn(schema: z.ZodType, value: unknown): string | undefined {
  const found = schema.safeParse(value).error?.issues.find((issue) => isFault(issue, value));
  return found && z.core.toDotPath(found.path);
}

function isFault(issue: z.core.$ZodIssue, root: unknown): boolean {
  if (issue.code === "invalid_type") return true;
  const value = issue.path.reduce(fieldOf, root);
  if (issue.code === "invalid_value") return typeof value !== "string";
  if (issue.code !== "invalid_union") return false;
  // Without `errors` no member of the union has this discriminator.
  if (issue.errors.length === 0) return typeof value !== "string";
  return issue.errors.every((branch) => branch.some((inner) => isFault(inner, value)));
}

function fieldOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
