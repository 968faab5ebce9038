import { JsonObject } from "../../../src/domain/json.ts";

/** Schemas of `outputFormat` by subject; test/claude/output-schema.test.ts checks them against the real Claude Code. */

interface Refused {
  readonly schema: JsonObject;
  /** Place in the error. */
  readonly at: string;
}

/** Parses text, because the linter takes an object literal with `then` for a promise. */
const read = (text: string): JsonObject => JsonObject.parse(JSON.parse(text));

const inProperty = (schema: JsonObject): JsonObject => ({ type: "object", properties: { a: schema } });

/** Keywords of other dialects, and of OpenAPI. */
const UNKNOWN: JsonObject = {
  $anchor: "a",
  $dynamicAnchor: "a",
  $dynamicRef: "#",
  $recursiveRef: "#",
  dependentRequired: {},
  dependentSchemas: {},
  discriminator: { propertyName: "a" },
  divisibleBy: 2,
  example: 1,
  extends: {},
  externalDocs: {},
  id: "a",
  markdownDescription: "a",
  maxContains: 2,
  minContains: 1,
  prefixItems: [{ type: "string" }],
  unevaluatedItems: false,
  unevaluatedProperties: false,
  "x-order": 1,
  xml: {},
};

const INVALID: JsonObject = {
  additionalItems: false,
  anyOf: [],
  enum: [],
  exclusiveMinimum: true,
  if: {},
  items: [],
  maxLength: -1,
  maximum: "1",
  multipleOf: 0,
  pattern: "(",
  properties: [],
  required: ["a", "a"],
  ...read('{"then":{}}'),
  type: "date",
};

const at = (name: string, schema: JsonObject, place: string): [string, Refused] => [name, { schema, at: place }];

export const REFUSED: Readonly<Record<string, Refused>> = Object.fromEntries([
  ...Object.entries(UNKNOWN).map(([name, value]) => at(name, inProperty({ [name]: value }), `.properties.a.${name}`)),
  ...Object.entries(INVALID).map(([name, value]) => at(name, { [name]: value }, `.${name}`)),
  at("nullable without type", { nullable: true }, ".nullable"),
  at("$async", { $async: true }, ""),
  at("a reference to nothing", inProperty({ $ref: "#/$defs/b" }), ".properties.a.$ref"),
  at("a remote reference", inProperty({ $ref: "https://example.com/a" }), ".properties.a.$ref"),
  at("what a reference leads to", { $ref: "#/$defs/a", $defs: { a: { foo: 1 } } }, ".$defs.a.foo"),
  at("inside items", { items: { foo: 1 } }, ".items.foo"),
  at("inside a union", { anyOf: [false, { not: { foo: 1 } }] }, ".anyOf.1.not.foo"),
  at("a value in definitions", { definitions: { a: { minimum: "1" } } }, ".definitions.a.minimum"),
  at("the dialect of a part", inProperty({ $schema: 5 }), ".properties.a.$schema"),
]);

export const ACCEPTED: Readonly<Record<string, JsonObject>> = {
  nothing: {},
  "draft 2020-12 by name": { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
  "a dialect that is not text": { $schema: 5, type: "object" },
  "the dialect of a part": inProperty({ $schema: "https://json-schema.org/draft/2020-12/schema" }),
  annotations: {
    title: "a",
    description: "a",
    $comment: "a",
    default: 1,
    examples: [1],
    deprecated: true,
    readOnly: true,
    writeOnly: true,
  },
  contents: { contentEncoding: "base64", contentMediaType: "text/plain", contentSchema: { foo: 1 } },
  "an unknown format": { type: "string", format: "nonsense" },
  "a tuple": { type: "array", items: [{ type: "string" }], additionalItems: false },
  types: { type: ["string", "null"], nullable: true },
  recursion: { ...inProperty({ $ref: "#" }), type: "object" },
  "what no reference leads to": {
    $defs: { a: { foo: 1 } },
    definitions: { a: { foo: 1, pattern: "(" } },
    $vocabulary: {},
  },
  "names listed twice where they are only compiled": {
    $ref: "#/$defs/a",
    $defs: { a: { type: "object", required: ["a", "a"] } },
  },
  "a pattern that is not needed": { type: "object", patternProperties: { "(": {} } },
  conditions: read(
    '{"type":"object","if":{"required":["a"]},"then":true,"else":false,"dependencies":{"a":["b"],"c":{}}}',
  ),
  "a union of which a part is always valid": { anyOf: [{ title: "a" }, { foo: 1 }] },
  "an escaped name": { type: "object", properties: { "a/b": { type: "string" }, c: { $ref: "#/properties/a~1b" } } },
};
