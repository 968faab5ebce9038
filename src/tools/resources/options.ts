import { z } from "zod";
import { AdvancedOptions, SessionOptions } from "../../domain/options.ts";
import type { Page } from "./define.ts";

/** The reference of all options of a session, read off their schema. */

type Schema = z.core.JSONSchema.BaseSchema;

export const options: Page = {
  uri: "claude-code://options",
  name: "options",
  title: "Options of a session",
  description: "Every option that claude_code takes, with its type, default and meaning.",
  mimeType: "text/markdown",
  text: () => {
    const advanced = Object.keys(AdvancedOptions.shape);
    const { properties = {} } = z.toJSONSchema(SessionOptions, { io: "input", unrepresentable: "any" });
    const lines = (isAdvanced: boolean) =>
      Object.entries(properties)
        .filter(([name]) => advanced.includes(name) === isAdvanced)
        .flatMap(([name, schema]) => (typeof schema === "object" ? [line(name, schema)] : []))
        .join("\n");
    return `# Options of claude_code

Beside prompt, waitMs and idempotencyKey. Unknown names are errors, at any depth.

${lines(false)}

In advanced (or flat, beside the others):

${lines(true)}
`;
  },
};

function line(name: string, schema: Schema): string {
  const { description = "" } = schema;
  return `- ${name}: ${shapeOf(schema)}.${description === "" ? "" : ` ${description}.`}`;
}

/** The values that a schema takes, in the words of JSON. */
function shapeOf(schema: Schema | boolean | undefined): string {
  if (schema === undefined || typeof schema === "boolean") return "any";
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return forms.map(shapeOf).join(" | ");
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `[${[schema.items ?? true].flat().map(shapeOf).join(", ")}, ...]`;
  if (schema.type === "object") return shapeOfObject(schema);
  const { type = "any", minimum, maximum } = schema;
  const isBounded = type === "integer" && minimum !== undefined && maximum !== undefined;
  return isBounded ? `integer ${String(minimum)} to ${String(maximum)}` : [type].flat().join(" | ");
}

function shapeOfObject({ properties, required = [], additionalProperties }: Schema): string {
  if (!properties) return `{ name: ${shapeOf(additionalProperties)}, ... }`;
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${name}${required.includes(name) ? "" : "?"}: ${shapeOf(schema)}`,
  );
  return `{ ${fields.join(", ")} }`;
}
