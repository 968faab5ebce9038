import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";

/**
 * Checks `outputFormat.schema` for Claude Code, which compiles the schema with Ajv as JSON Schema draft 7 in strict mode, and
 * does not start if Ajv refuses. Compiling here could block the thread for minutes; the check takes time in proportion to the
 * schema.
 */

const FIELD = "outputFormat.schema";
const ADVICE =
  'Write it in JSON Schema draft 7 (zod 4: z.toJSONSchema(schema, { target: "draft-7" })). The options of a session cannot be changed: start a new one.';

/** Claude Code's own limit. */
const MAX_VALUES = 100_000;
/** Steps from the root to a schema. Beyond, Claude Code runs out of stack. */
const MAX_STEPS = 1000;
const MAX_PATH_CHARS = 200;

type Fault = string | undefined;
/** `isRead`: Ajv checks the value by the schema of schemas too, which requires distinct list items. */
type Check = (value: unknown, isRead: boolean) => Fault;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const must = (what: string, holds: (value: unknown, isRead: boolean) => boolean): Check => {
  return (value, isRead) => (holds(value, isRead) ? undefined : `must be ${what}`);
};
const isUnique = (all: readonly unknown[]): boolean =>
  new Set(all.map((each) => JSON.stringify(each))).size === all.length;

const string = must("a string", (value) => typeof value === "string");
const boolean = must("a boolean", (value) => typeof value === "boolean");
const number = must("a number", (value) => typeof value === "number");
const positive = must("a number above 0", (value) => typeof value === "number" && value > 0);
const count = must("a whole number of at least 0", (value) => Number.isInteger(value) && Number(value) >= 0);
const list = must("an array", Array.isArray);
const values = must(
  "an array of different values, at least one",
  (value, isRead) => Array.isArray(value) && value.length > 0 && (!isRead || isUnique(value)),
);
const names = must("an array of different strings", (value, isRead) => isNames(value) && (!isRead || isUnique(value)));
const schema = must("a schema", isSchema);
const schemas = must("an array of schemas, at least one", isSchemas);
const schemaMap = must("an object of schemas", (value) => isObject(value) && Object.values(value).every(isSchema));
const any: Check = () => undefined;
const items = must("a schema, or an array of schemas", (value) => isSchema(value) || isSchemas(value));
const dependencies = must(
  "an object of schemas or names",
  (value) => isObject(value) && Object.values(value).every((each) => isSchema(each) || isNames(each)),
);

function isSchema(value: unknown): boolean {
  return typeof value === "boolean" || isObject(value);
}

function isSchemas(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isSchema);
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

const TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"];
const type = must(`one of ${TYPES.join(", ")}, or an array of these`, (value) => {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  return all.length > 0 && isUnique(all) && all.every((each) => typeof each === "string" && TYPES.includes(each));
});

/** Ajv compiles patterns with the flag `u`. */
const pattern: Check = (value) => {
  if (typeof value !== "string") return "must be a string";
  try {
    void RegExp(value, "u");
    return undefined;
  } catch (error) {
    return `is not a valid regular expression: ${error instanceof Error ? error.message : String(error)}`;
  }
};

/** Keywords without a rule: Ajv compiles nothing of a schema with only such keywords. */
const ANNOTATIONS = new Set("title description default deprecated readOnly writeOnly examples".split(" "));

function isAlwaysValid(value: unknown): boolean {
  return value === true || (isObject(value) && Object.keys(value).every((keyword) => ANNOTATIONS.has(keyword)));
}

const patterns: Check = (value, isRead) => {
  const fault = schemaMap(value, isRead);
  if (fault !== undefined || !isObject(value)) return fault;
  const compiled = Object.keys(value).filter((key) => !isAlwaysValid(value[key]));
  return compiled.map((key) => pattern(key, isRead)).find((each) => each !== undefined);
};

/** All keywords of draft 7 known to Ajv, by the check of their values. */
const GROUPS: readonly (readonly [Check, string])[] = [
  [any, "$defs $vocabulary $async deprecated const default contentSchema"],
  [string, "$schema $id $comment $ref title description format contentMediaType contentEncoding"],
  [boolean, "nullable uniqueItems readOnly writeOnly"],
  [number, "minimum maximum exclusiveMinimum exclusiveMaximum"],
  [positive, "multipleOf"],
  [count, "minLength maxLength minItems maxItems minProperties maxProperties"],
  [type, "type"],
  [pattern, "pattern"],
  [patterns, "patternProperties"],
  [list, "examples"],
  [values, "enum"],
  [names, "required"],
  [schemaMap, "properties definitions"],
  [dependencies, "dependencies"],
  [items, "items"],
  [schema, "additionalItems additionalProperties propertyNames contains not if then else"],
  [schemas, "allOf anyOf oneOf"],
];
const KEYWORDS: ReadonlyMap<string, Check> = new Map(
  GROUPS.flatMap(([check, keywords]) => keywords.split(" ").map((name) => [name, check] as const)),
);

const INSIDE = [
  "items",
  "additionalItems",
  "additionalProperties",
  "propertyNames",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "allOf",
  "anyOf",
  "oneOf",
];
const INSIDE_BY_NAME = ["properties", "patternProperties", "dependencies"];

interface SchemaPlace {
  readonly at: readonly string[];
  readonly value: unknown;
  /** True if Ajv compiles the value; definitions without a `$ref` are only read. */
  readonly isCompiled: boolean;
  readonly isRead: boolean;
}

/** Throws INVALID_ARGUMENT naming the first place that Claude Code would refuse. */
export function checkOutputSchema({ outputFormat }: Pick<SessionOptions, "outputFormat">): void {
  if (!outputFormat) return;
  const root = withoutDialect(outputFormat.schema);
  if (root["$async"]) refuse([], "asynchronous schemas are not supported");
  // Resolves no references if schemas have ids of their own.
  const refersTo = holdsIds(root) ? undefined : root;
  const seen = new Map<unknown, boolean>();
  const next: SchemaPlace[] = [{ at: [], value: root, isCompiled: true, isRead: true }];
  for (const place of next) {
    const { value } = place;
    // Already checked at least as strictly.
    if (!isObject(value) || (seen.get(value) ?? false) || (seen.has(value) && !place.isCompiled)) continue;
    seen.set(value, place.isCompiled);
    if (place.at.length > MAX_STEPS) refuse(place.at.slice(0, 3), "is nested too deeply");
    checkPlace(place, value);
    for (const each of [...subschemas(place, value), ...referencedSchemas(refersTo, place, value)]) next.push(each);
  }
}

function holdsIds(root: JsonObject): boolean {
  const next: unknown[] = [root];
  for (const value of next) {
    if (next.length > MAX_VALUES) refuse([], `holds more than ${String(MAX_VALUES)} values`);
    if (typeof value !== "object" || value === null) continue;
    if (isObject(value) && typeof value["$id"] === "string") return true;
    for (const each of Object.values(value)) next.push(each);
  }
  return false;
}

/** Removes `$schema`, because Claude Code refuses a schema that names another dialect than Ajv's. */
export function withoutDialect(schemaOf: JsonObject): JsonObject {
  const { $schema: _dialect, ...rest } = schemaOf;
  return rest;
}

const COMPILED_ONLY = new Set(["pattern", "patternProperties"]);

function checkPlace({ at, isCompiled, isRead }: SchemaPlace, value: JsonObject): void {
  for (const [keyword, given] of Object.entries(value)) {
    if (!isCompiled && COMPILED_ONLY.has(keyword)) continue;
    const check = KEYWORDS.get(keyword);
    if (!check && isCompiled) refuse([...at, keyword], "Claude Code does not know this keyword");
    const fault = check?.(given, isRead);
    if (fault !== undefined) refuse([...at, keyword], fault);
  }
  const fault = isCompiled ? findLoneKeyword(value) : undefined;
  if (fault) refuse([...at, fault[0]], fault[1]);
}

/** Returns a keyword without effect unless another is present, which strict mode refuses. */
function findLoneKeyword(value: JsonObject): [keyword: string, why: string] | undefined {
  const has = (name: string) => Object.hasOwn(value, name);
  if (has("if") && !has("then") && !has("else")) return ["if", "is ignored without then and else"];
  const branch = ["then", "else"].find(has);
  if (branch !== undefined && !has("if")) return [branch, "is ignored without if"];
  if (has("additionalItems") && !Array.isArray(value["items"]))
    return ["additionalItems", "is ignored unless items is an array"];
  return has("nullable") && !has("type") ? ["nullable", "cannot be used without type"] : undefined;
}

function subschemas({ at, isCompiled, isRead }: SchemaPlace, value: JsonObject): SchemaPlace[] {
  const places: SchemaPlace[] = [];
  const add = (path: string[], held: unknown, compiled = isCompiled) =>
    places.push({ at: [...at, ...path], value: held, isCompiled: compiled, isRead });
  for (const name of INSIDE) {
    const held = value[name];
    // Treats an `anyOf` with an always valid branch as not compiled.
    const compiled = isCompiled && !(name === "anyOf" && Array.isArray(held) && held.some(isAlwaysValid));
    if (Array.isArray(held)) for (const [index, each] of held.entries()) add([name, String(index)], each, compiled);
    else add([name], held);
  }
  for (const name of [...INSIDE_BY_NAME, "definitions"]) {
    const held = value[name];
    if (isObject(held))
      for (const [key, each] of Object.entries(held)) add([name, key], each, isCompiled && name !== "definitions");
  }
  return places;
}

const METASCHEMA = /^http:\/\/json-schema\.org\/draft-07\/schema/;

function referencedSchemas(
  root: JsonObject | undefined,
  { at, isCompiled }: SchemaPlace,
  { $ref: ref }: JsonObject,
): SchemaPlace[] {
  if (!root || !isCompiled || typeof ref !== "string" || METASCHEMA.test(ref)) return [];
  const path = /^#(?:\/(.*))?$/s.exec(ref);
  const keys = (path?.[1] ?? "").split("/").filter((key) => key !== "");
  const found = path && keys.reduce<unknown>((held, key) => stepInto(held, key), root);
  if (!isSchema(found)) refuse([...at, "$ref"], `${ref.slice(0, MAX_PATH_CHARS)} does not lead to a schema`);
  return [{ at: keys, value: found, isCompiled, isRead: false }];
}

function stepInto(held: unknown, key: string): unknown {
  let name = key;
  try {
    name = decodeURIComponent(key);
  } catch {
    // Keeps `key` undecoded.
  }
  name = name.replaceAll("~1", "/").replaceAll("~0", "~");
  if (Array.isArray(held)) return held[Number(name)];
  return isObject(held) && Object.hasOwn(held, name) ? held[name] : undefined;
}

function refuse(at: readonly string[], why: string): never {
  const place = at.map((key) => `.${key}`).join("");
  const shown = place.length > MAX_PATH_CHARS ? `${place.slice(0, MAX_PATH_CHARS)}…` : place;
  throw invalidArgument(`${FIELD}${shown}`, `${why}. ${ADVICE}`);
}
