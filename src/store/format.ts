import { z } from "zod";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import type { SessionEvent } from "../domain/event.ts";
import { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { SessionState } from "../domain/session.ts";

/**
 * The JSON in which every store keeps sessions. Each text carries the version of its shape, and what an older server has
 * written is brought up to the present version when it is read. Beyond that nothing is checked against today's schemas: a
 * newer server may have written more than this one knows, and that is kept.
 */

interface Parts {
  state: SessionState;
  options: SessionOptions;
  policy: SessionPolicy;
  event: SessionEvent;
}

/** Makes a value of one version out of one of the version before, without changing that one. */
type Upgrade = (old: JsonObject) => JsonObject;

/**
 * What a version changes. An upgrade leaves alone what is there already: an older server that shares the store keeps fields
 * that it does not know, and writes them back under its own version.
 */
export interface Version extends Partial<Readonly<Record<keyof Parts, Upgrade>>> {
  /** Servers of the version before cannot work with this one. */
  readonly breaks?: true;
}

/**
 * Number n makes version n out of n - 1; the first has none before it. `UPDATE_ROWS=1` writes the rows and the shape of a new one
 * (test/unit/store-format.test.ts), which are read for ever. A version that was released is never changed; one that was not is
 * changed in place, and its two files are deleted and written again.
 */
export const VERSIONS: readonly Version[] = [
  // 0.1.0
  {},
];

/** Thrown for what a server has written that this one cannot work with. */
export class NewerFormatError extends Error {
  override readonly name = "NewerFormatError";
}

export interface Format<T> {
  /** Throws TypeError for what has no JSON: a cycle, a bigint. */
  write(value: T): string;
  /** A fresh copy each time. Throws NewerFormatError. */
  read(text: string): T;
}

export function formatOf<K extends keyof Parts>(part: K, versions = VERSIONS): Format<Parts[K]> {
  const present = versions.length;
  const oldestReader = versions.findLastIndex(({ breaks }) => breaks) + 1;
  const header = `{"v":${String(present)},${oldestReader > 0 ? `"needs":${String(oldestReader)},` : ""}`;
  // What was written here had this type, and the versions bring the rest to it; the tests of all stored rows hold them to it.
  const parse: (text: string) => Parts[K] = JSON.parse;
  const typed = z.custom<Parts[K]>();
  return {
    // None of them is empty. Put before the text, and taken off it again: copying each object costs as much as its JSON.
    write: (value) => header + JSON.stringify(value).slice(1),
    read: (text) =>
      text.startsWith(header)
        ? parse(`{${text.slice(header.length)}`)
        : typed.parse(upgraded(part, JsonObject.parse(JSON.parse(text)), versions)),
  };
}

function upgraded(part: keyof Parts, { needs = 0, v, ...value }: JsonObject, versions: readonly Version[]): JsonObject {
  if (typeof v !== "number" || typeof needs !== "number") throw new SyntaxError(`a version of ${part} is no number`);
  if (needs > versions.length) throw new NewerFormatError(newer(part, needs, versions.length));
  return versions.slice(v).reduce((old, { [part]: upgrade }) => upgrade?.(old) ?? old, value);
}

function newer(part: string, needed: number, present: number): string {
  const problem = `a session's ${part} needs format version ${String(needed)}, and this claude-agents-mcp reads up to version ${String(present)}`;
  return `${problem}. Update claude-agents-mcp.`;
}

export const STATE = formatOf("state");
export const OPTIONS = formatOf("options");
export const POLICY = formatOf("policy");
export const EVENT = formatOf("event");

/**
 * Names the first field of `value` that has another type than in `schema`, undefined when there is none. Fields, words and kinds
 * that this version does not know are no fault.
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
