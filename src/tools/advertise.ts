import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";

/**
 * The JSON Schema that clients are shown. Every byte of it is in the context of every model that has the server, so
 * what says nothing to a caller, and bounds that only guard us, are left out; they are enforced all the same.
 */

const UNSAID = new Set([
  "$schema",
  "additionalProperties",
  "format",
  "maxItems",
  "maxLength",
  "maximum",
  "minItems",
  "minLength",
  "minimum",
  "propertyNames",
]);

/** In place of a derived schema another one, which may be made of it. */
export type Advertised = Readonly<Record<string, JsonObject | ((derived: JsonObject) => JsonObject)>>;

interface Offer {
  /** Names that are accepted without being offered. */
  readonly unlisted: readonly string[];
  /** Offered in place of what is derived, by name. */
  readonly advertised: Advertised;
  readonly limits: { readonly maxWaitMs: number; readonly prefersOneWait?: boolean };
  /** With the bounds of numbers, for the docs: a model meets them in an error. */
  readonly bounded?: boolean | undefined;
}

export function advertiseInput(
  schema: z.ZodObject,
  { unlisted, advertised, limits, bounded = false }: Offer,
): JsonObject {
  const { properties = {}, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const offered = Object.entries(properties).filter(([name]) => !unlisted.includes(name));
  const shown = offered.map(([name, property]): [string, JsonObject] => {
    const given = advertised[name] ?? lean(property);
    // The docs have a table of what is made here.
    const own = typeof given === "function" ? (bounded ? lean(property) : given(partOf(property))) : given;
    return [name, { ...own, ...(bounded && boundsOf(property)), ...(name === "waitMs" && waitOf(own, limits)) }];
  });
  return { ...lean(rest), properties: Object.fromEntries(shown) };
}

/** Limits the wait, which differs from client to client. */
function waitOf({ description }: JsonObject, { maxWaitMs, prefersOneWait }: Offer["limits"]): JsonObject {
  return {
    ...(prefersOneWait && { description: `one long wait is best. ${String(description)}` }),
    maximum: maxWaitMs,
  };
}

function boundsOf(schema: unknown): JsonObject {
  if (typeof schema !== "object" || schema === null) return {};
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key === "minimum" || key === "maximum"));
}

/** The keys of an object with their types, those of one type together: `a, b: boolean; c: one|other`. */
export function keysAndTypes({ properties }: JsonObject): string {
  const byType = new Map<string, string[]>();
  for (const [name, schema] of Object.entries(partOf(properties))) {
    const type = typeIn(partOf(schema));
    byType.set(type, [...(byType.get(type) ?? []), name]);
  }
  return [...byType].map(([type, names]) => `${names.join(", ")}: ${type}`).join("; ");
}

/** The maximum number of keys of an object that are named in place of its type. */
const MAX_KEYS = 3;

function typeIn(schema: JsonObject): string {
  const forms = [schema["anyOf"], schema["oneOf"]].flat().map(partOf);
  const shapes = forms.flatMap(({ properties }) =>
    properties === undefined ? [] : Object.entries(partOf(properties)),
  );
  const merged = shapes.length > 0 ? [{ type: "object", properties: Object.fromEntries(shapes) }] : [];
  const others = forms.filter(({ properties, ...rest }) => properties === undefined && Object.keys(rest).length > 0);
  return [...others, ...merged].map(typeIn).join("|") || typeOf(schema);
}

function typeOf({ const: only, enum: values = [only], items, properties, type }: JsonObject): string {
  if (Array.isArray(values) && values[0] !== undefined) return values.join("|");
  if (type === "array") return `${String(partOf(items)["type"])}[]`;
  const keys = Object.keys(partOf(properties));
  if (keys.length > 0 && keys.length <= MAX_KEYS) return `{${keys.join(", ")}}`;
  return type === "integer" ? "number" : String(type);
}

function partOf(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Answers explain themselves: that there is an object is all that a client has to know beforehand. */
export const ADVERTISED_OUTPUT: JsonObject = { type: "object" };

function lean(schema: unknown): JsonObject {
  if (typeof schema !== "object" || schema === null) return {};
  const kept = Object.entries(schema).filter(([key, value]) => !UNSAID.has(key) && !saysNothing(value));
  return Object.fromEntries(kept.map(([key, value]) => [key, leanPart(key, value)]));
}

function leanPart(key: string, value: unknown): unknown {
  if (key === "items") return lean(value);
  if (key !== "properties" || typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, lean(property)]));
}

/** The fields of an object that has none named. */
function saysNothing(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
