import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";

/**
 * Builds the JSON Schema shown to clients. Every byte of the schema is in the context of every model with this server, so
 * keywords without use to a caller (`OMITTED_KEYWORDS`) and bounds protecting only the server are left out. `parseArguments` still
 * enforces them.
 */

const OMITTED_KEYWORDS = new Set([
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

/** Replacements for derived schemas, by parameter name. A function makes the replacement from the derived schema. */
export type Advertised = Readonly<Record<string, JsonObject | ((derived: JsonObject) => JsonObject)>>;

interface SchemaSettings {
  /** Parameters accepted but not listed. */
  readonly unlisted: readonly string[];
  /** Schemas listed in place of the derived ones, by parameter name. */
  readonly advertised: Advertised;
  readonly limits: { readonly maxWaitMs: number; readonly waitsByDefault?: boolean };
  /** If true, bounds of numbers are included, for the docs. A model learns a bound from the error. */
  readonly bounded?: boolean | undefined;
}

export function deriveInputSchema(
  schema: z.ZodObject,
  { unlisted, advertised, limits, bounded = false }: SchemaSettings,
): JsonObject {
  const { properties = {}, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const offered = Object.entries(properties).filter(([name]) => !unlisted.includes(name));
  const shown = offered.map(([name, property]): [string, JsonObject] => {
    const given = advertised[name] ?? lean(property);
    // The docs have a table of the options behind a made schema, so `bounded` keeps the derived one.
    const own = typeof given === "function" ? (bounded ? lean(property) : given(asObject(property))) : given;
    return [name, { ...own, ...(bounded && boundsOf(property)), ...(name === "waitMs" && limitWait(limits)) }];
  });
  return { ...lean(rest), properties: Object.fromEntries(shown) };
}

/** Sets `maximum` to the wait limit of the client, and `waitMs` to its default for that client. */
function limitWait({ maxWaitMs, waitsByDefault }: SchemaSettings["limits"]): JsonObject {
  return { ...(waitsByDefault && { description: "Default: the maximum" }), maximum: maxWaitMs };
}

function boundsOf(schema: unknown): JsonObject {
  if (typeof schema !== "object" || schema === null) return {};
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key === "minimum" || key === "maximum"));
}

/** Names the keys of an object schema, grouped by type: `a, b: boolean; c: one|other`. */
export function keysAndTypes({ properties }: JsonObject): string {
  const byType = new Map<string, string[]>();
  for (const [name, schema] of Object.entries(asObject(properties))) {
    const type = describeType(asObject(schema));
    byType.set(type, [...(byType.get(type) ?? []), name]);
  }
  return [...byType].map(([type, names]) => `${names.join(", ")}: ${type}`).join("; ");
}

/** Maximum number of keys named in place of the type `object`. */
const MAX_KEYS = 3;

function describeType(schema: JsonObject): string {
  const forms = [schema["anyOf"], schema["oneOf"]].flat().map(asObject);
  const shapes = forms.flatMap(({ properties }) =>
    properties === undefined ? [] : Object.entries(asObject(properties)),
  );
  const merged = shapes.length > 0 ? [{ type: "object", properties: Object.fromEntries(shapes) }] : [];
  const others = forms.filter(({ properties, ...rest }) => properties === undefined && Object.keys(rest).length > 0);
  return [...others, ...merged].map(describeType).join("|") || describePlainType(schema);
}

function describePlainType({ const: only, enum: values = [only], items, properties, type }: JsonObject): string {
  if (Array.isArray(values) && values[0] !== undefined) return values.join("|");
  if (type === "array") return `${String(asObject(items)["type"])}[]`;
  const keys = Object.keys(asObject(properties));
  if (keys.length > 0 && keys.length <= MAX_KEYS) return `{${keys.join(", ")}}`;
  return type === "integer" ? "number" : String(type);
}

function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Schema of every answer. Answers explain themselves, so clients only learn in advance that an answer is an object. */
export const ADVERTISED_OUTPUT: JsonObject = { type: "object" };

function lean(schema: unknown): JsonObject {
  if (typeof schema !== "object" || schema === null) return {};
  const kept = Object.entries(schema).filter(([key, value]) => !OMITTED_KEYWORDS.has(key) && !isEmptyObject(value));
  return Object.fromEntries(kept.map(([key, value]) => [key, leanPart(key, value)]));
}

function leanPart(key: string, value: unknown): unknown {
  if (key === "items") return lean(value);
  if (key !== "properties" || typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, property]) => [name, lean(property)]));
}

/** True for an empty object, such as `properties` without entries. */
function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
