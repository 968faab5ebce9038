import { ProtocolError } from "./frame.ts";

/** Reads fields of headers. Each function throws `ProtocolError` with the fault. */

export type Fields = Readonly<Record<string, unknown>>;

/** Maximum length of the ids of processes, of lines written to Claude Code, and of control requests, characters. */
export const MAX_ID = 128;

export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new ProtocolError(`\`${name}\` is not a text`);
  return value;
}

export function optionalText<Name extends string>(fields: Fields, name: Name): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {};
  if (fields[name] !== undefined) found[name] = textOf(fields, name);
  return found;
}

/** Accepts printable ASCII without quotes and backslashes, so that a list of ids has a known length in a header. */
export function isId(text: string): boolean {
  return text.length <= MAX_ID && /^[!#-[\]-~]+$/.test(text);
}

export function idOf(fields: Fields, name: string): string {
  const value = textOf(fields, name);
  if (isId(value)) return value;
  throw new ProtocolError(`\`${name}\` is not 1 to ${String(MAX_ID)} printable ASCII characters without " and \\`);
}

export function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number") throw new ProtocolError(`\`${name}\` is not a number`);
  return value;
}

export function countOf(fields: Fields, name: string): number {
  const value = numberOf(fields, name);
  if (!Number.isSafeInteger(value) || value < 0) throw new ProtocolError(`\`${name}\` is not a whole number from 0`);
  return value;
}

export function listOf(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw new ProtocolError(`\`${name}\` is not a list`);
  return value;
}

export function textsOf(fields: Fields, name: string): string[] {
  return listOf(fields, name).map((each) => {
    if (typeof each === "string") return each;
    throw new ProtocolError(`\`${name}\` is not a list of texts`);
  });
}
