import { describe, expect, it } from "vitest";
import { z } from "zod";

import { checkOutputSchema } from "../../src/claude/preflight/output-schema.ts";
import { toSdkOptions } from "../../src/claude/sdk-options.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { ACCEPTED, REFUSED } from "../kit/sessions/output-schemas.ts";

const check = (schema: JsonObject) => checkOutputSchema({ outputFormat: { type: "json_schema", schema } });

describe("a schema of structured output", () => {
  it.each(Object.entries(REFUSED))("an invalid schema is refused with the place: %s", (_, { at, schema }) => {
    expect(() => check(schema)).toThrow(`outputFormat.schema${at}: `);
    expect(() => check(schema)).toThrow(/draft 7 .*start a new one\.$/s);
  });

  it.each(Object.entries(ACCEPTED))("a valid schema is accepted: %s", (_, schema) => {
    expect(() => check(schema)).not.toThrow();
  });

  it("a schema of zod is accepted for draft 7, and reaches Claude Code without its `$schema`", () => {
    const schema = z.object({ pair: z.tuple([z.string(), z.number()]), at: z.email().nullable() });
    expect(() => check(z.toJSONSchema(schema))).toThrow("outputFormat.schema.properties.pair.prefixItems: ");
    const draft7: JsonObject = { ...z.toJSONSchema(schema, { target: "draft-7" }) };
    check(draft7);
    const plain: JsonObject = { ...z.toJSONSchema(z.object({ a: z.string() })) };
    check(plain);
    const { $schema: dialect, ...rest } = plain;
    expect(dialect).toContain("2020-12");
    const outputFormat = { type: "json_schema" as const, schema: plain };
    expect(toSdkOptions({ cwd: "/x", outputFormat }).outputFormat).toEqual({ type: "json_schema", schema: rest });
  });

  it("deep schemas and schemas of more than 100,000 values are refused; 20,000 references are checked in time", () => {
    let deep: JsonObject = { type: "string" };
    for (let depth = 0; depth < 5000; depth += 1) deep = { not: deep };
    expect(() => check(deep)).toThrow("nested too deeply");
    expect(() => check({ enum: Array.from({ length: 100_001 }, (_, index) => index) })).toThrow(
      "more than 100000 values",
    );
    const many = Array.from({ length: 20_000 }, (_, index) => ({ const: index, $ref: "#/definitions/a" }));
    check({ definitions: { a: { anyOf: [{ $ref: "#" }] } }, anyOf: many });
  });
});
