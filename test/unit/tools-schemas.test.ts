import { describe, expect, it } from "vitest";

import { toolsOf } from "../../src/tools/toolsets.ts";
import { TOOLSET_SETTINGS } from "../kit/tools/fake-engine.ts";

/** Checks the listing of every tool for constructs that clients and their models refuse. */

interface Schema {
  readonly [key: string]: unknown;
  readonly type?: unknown;
  readonly items?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
}

const tools = toolsOf(["all"], TOOLSET_SETTINGS);
const schemaOf = (tool: (typeof tools)[number]) => tool.inputSchema({ maxWaitMs: 45_000 }) as Schema;

const TYPES = new Set<unknown>(["array", "boolean", "integer", "number", "object", "string"]);
/** Allowed keywords; `format` is missing because some clients refuse most of its values. */
const KEYWORDS = new Set("anyOf default description enum items maximum minimum properties required type".split(" "));

/** Returns `schema` and all subschemas, each with its path. */
function partsOf(schema: Schema, path = "arguments"): [string, Schema][] {
  const { anyOf = [], items, properties = {} } = schema;
  const below = [
    ...Object.entries(properties).flatMap(([name, each]) => partsOf(each, `${path}.${name}`)),
    ...anyOf.flatMap((each, index) => partsOf(each, `${path}|${String(index)}`)),
    ...(items === undefined ? [] : partsOf(items as Schema, `${path}[]`)),
  ];
  return [[path, schema], ...below];
}

const REFUSED: Readonly<Record<string, (schema: Schema, path: string) => boolean>> = {
  // Gemini refuses a list of types, and a missing type.
  "no plain type": ({ anyOf, type }) => (anyOf === undefined ? !TYPES.has(type) : type !== undefined),
  // OpenAI's models refuse the whole request, VS Code the tool.
  "an array without items": ({ items, type }) => type === "array" && (typeof items !== "object" || items === null),
  "an object without properties": ({ properties, type }) => type === "object" && properties === undefined,
  "a union at the top": ({ anyOf }, path) => path === "arguments" && anyOf !== undefined,
  "an odd enum": ({ enum: words = [] }) => !Array.isArray(words) || words.some((word) => typeof word !== "string"),
  "a required name that is not there": ({ properties, required = [] }) =>
    required.some((name) => properties?.[name] === undefined),
};

function refusedIn([path, schema]: [string, Schema]): string[] {
  const problems = Object.entries(REFUSED).flatMap(([problem, is]) => (is(schema, path) ? [problem] : []));
  const odd = Object.keys(schema).filter((key) => !KEYWORDS.has(key));
  return [...problems, ...odd.map((key) => `the keyword ${key}`)].map((problem) => `${path}: ${problem}`);
}

describe("the schema of a tool", () => {
  it.each(tools)("$name has no construct that a client is known to refuse", (tool) => {
    expect(partsOf(schemaOf(tool)).flatMap(refusedIn)).toEqual([]);
  });

  it("a refused construct in a schema is recognised", () => {
    const bad: Schema = {
      type: "object",
      properties: {
        a: { type: "array" },
        b: { type: "object" },
        c: { $ref: "#/x" },
        d: { type: "string", format: "uri" },
        e: { type: ["string", "null"] },
      },
      required: ["f"],
    };
    expect(partsOf(bad).flatMap(refusedIn)).toEqual([
      "arguments: a required name that is not there",
      "arguments.a: an array without items",
      "arguments.b: an object without properties",
      "arguments.c: no plain type",
      "arguments.c: the keyword $ref",
      "arguments.d: the keyword format",
      "arguments.e: no plain type",
    ]);
    expect(refusedIn(["arguments", { anyOf: [] }])).toEqual(["arguments: a union at the top"]);
  });
});

/**
 * Applies the rules of @openai/agents-core 0.20.0 for strict mode (utils/strictToolSchema.mjs): an object without fields is
 * open, and an option of a union may have no optional field. If a rule is broken, the package warns and leaves the tool
 * unchanged.
 */
function notStrict([path, { anyOf, properties, type }]: [string, Schema]): string[] {
  const isOpen = type === "object" && Object.keys(properties ?? {}).length === 0;
  const optional = (anyOf ?? []).some(
    (each) => Object.keys(each.properties ?? {}).length > (each.required ?? []).length,
  );
  return [...(isOpen ? [`${path}: open`] : []), ...(optional ? [`${path}: optional fields in a union`] : [])];
}

/** Paths of open objects: their fields have names chosen by the caller, or too many forms for the listing. */
const OPEN: Readonly<Record<string, readonly string[]>> = {
  claude_code: ["arguments.attachments[]", "arguments.systemPrompt|1", "arguments.advanced"],
  claude_code_check: [
    "arguments.sessions[]",
    "arguments.pollOptions",
    "arguments.permissionOptions",
    "arguments.answers",
  ],
  claude_code_reply: ["arguments.attachments[]"],
};

describe("strict mode of @openai/agents", () => {
  it.each(tools)("$name is converted without a complaint, except for open objects", (tool) => {
    // The conversion itself closes a tool without arguments.
    const parts = partsOf(schemaOf(tool)).filter(([path]) => path !== "arguments");
    expect(parts.flatMap(notStrict)).toEqual((OPEN[tool.name] ?? []).map((path) => `${path}: open`));
  });
});
