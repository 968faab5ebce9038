import { z } from "zod";
import { AdvancedOptions, SessionOptions } from "../../domain/options.ts";
import { PromptOptions } from "../../tools/prompt.ts";

/**
 * Renders the reference of all options of a session in Markdown, from the schemas that parse arguments. The listing of
 * `claude_code` leaves these texts out, so that they do not fill the context of every model.
 */
export function optionsReference(): string {
  const schema: Schema = z.toJSONSchema(SessionOptions.extend(PromptOptions.shape), { io: "input" });
  const advanced = Object.keys({ ...AdvancedOptions.shape, ...PromptOptions.shape });
  const isAdvanced = ({ name }: { name: string }) => advanced.includes(name);
  const rows = rowsOf(schema);
  return [
    "# Options of a session",
    "Given to claude_code, beside `prompt`. An unknown name is an error, at any depth.",
    renderRows(rows.filter((row) => !isAdvanced(row))),
    "## In `advanced`",
    "They can also be given at the top level. `endWithClient` applies to one prompt. claude_code_reply accepts it too, and `verify` for its turn.",
    renderRows(rows.filter(isAdvanced)),
    ...sections(schema),
    "",
  ].join("\n\n");
}

function renderRows(rows: readonly Row[]): string {
  return rows
    .map((row) => {
      // An option with a default is required in the parsed options only.
      const words = wordsOf({ ...row, required: row.required && row.fallback === undefined });
      return `- ${code(row.name)} (${row.type})${words === "" ? "" : `: ${words}`}`;
    })
    .join("\n");
}

/** Describes the fields of options that are objects, nested objects included. Paths with equal fields share a section. */
function sections({ properties = {} }: Schema): string[] {
  const headings = new Map<string, string[]>();
  for (const [name, each] of Object.entries(properties)) {
    for (const { form, path, schema } of isSchema(each) ? objectsIn(each, name) : []) {
      const fields = `${form}\n\n${renderRows(rowsOf(schema))}`;
      headings.set(fields, [...(headings.get(fields) ?? []), code(path)]);
    }
  }
  return [...headings].map(([fields, paths]) => `## ${paths.join(" and ")}${fields}`);
}

/** `NAME` in a path stands for any name. */
function objectsIn(schema: Schema, path: string): (Shape & { form: string })[] {
  const shapes = shapesOf(schema, path);
  return shapes.flatMap((shape, index) => [
    { ...shape, form: shapes.length > 1 ? `, form ${String(index + 1)}` : "" },
    ...Object.entries(shape.schema.properties ?? {}).flatMap(([name, each]) =>
      isSchema(each) ? objectsIn(each, `${shape.path}.${name}`) : [],
    ),
  ]);
}

interface Shape {
  readonly path: string;
  readonly schema: Schema;
}

/** Finds the objects with named fields that may stand at `path`. */
function shapesOf(schema: Schema, path: string): Shape[] {
  const forms = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
  if (forms.length > 0) return forms.flatMap((form) => shapesOf(form, path));
  if (schema.properties) return [{ path, schema }];
  if (isSchema(schema.items)) return shapesOf(schema.items, `${path}[]`);
  return isSchema(schema.additionalProperties) ? shapesOf(schema.additionalProperties, `${path}.NAME`) : [];
}

/** Describes a JSON Schema in words, for the docs and for the resource `claude-code://options`. */

export type Schema = z.core.JSONSchema.BaseSchema;

interface Row {
  readonly name: string;
  readonly required: boolean;
  readonly type: string;
  /** Description without the default; empty if the schema has none. */
  readonly meaning: string;
  /** Default in words; `undefined` if the description names none. */
  readonly fallback: string | undefined;
}

/** Returns a row for each property of an object. */
export function rowsOf({ properties = {}, required = [] }: Schema): Row[] {
  return Object.entries(properties)
    .filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    .map(([name, schema]) => ({
      name,
      required: required.includes(name),
      type: describeType(schema),
      ...splitDefault(schema.description ?? ""),
    }));
}

const DEFAULT = "Default: ";

function splitDefault(text: string): Pick<Row, "meaning" | "fallback"> {
  const at = text.lastIndexOf(DEFAULT);
  if (at < 0) return { meaning: sentence(text), fallback: undefined };
  return { meaning: sentence(text.slice(0, at).trim()), fallback: text.slice(at + DEFAULT.length) };
}

function sentence(text: string): string {
  if (text === "") return "";
  const begun = text.startsWith("ms ") ? text : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return begun.endsWith(".") ? begun : `${begun}.`;
}

/** Joins the words of a row after its name, for one table cell. */
export function wordsOf({ required, meaning, fallback }: Row): string {
  const words = [required ? "Required." : "", meaning, fallback === undefined ? "" : `${DEFAULT}${fallback}.`];
  return words.filter((word) => word !== "").join(" ");
}

export const code = (text: unknown): string => `\`${String(text)}\``;

function describeType(schema: Schema): string {
  if (schema.enum) return schema.enum.map(code).join(", ");
  if (schema.const !== undefined) return code(schema.const);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return [...new Set(forms.filter(isSchema).map(describeType))].join(" or ");
  if (schema.type === "array") return `array of ${isSchema(schema.items) ? describeType(schema.items) : "object"}`;
  return schema.type === "integer" || schema.type === "number" ? describeRange(schema) : String(schema.type);
}

function describeRange({ exclusiveMinimum, maximum, minimum, type }: Schema): string {
  const most = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (minimum !== undefined && most !== undefined) return `${String(type)}, ${String(minimum)} to ${String(most)}`;
  const bounds = [
    ...(exclusiveMinimum === undefined ? [] : [`above ${String(exclusiveMinimum)}`]),
    ...(minimum === undefined ? [] : [`at least ${String(minimum)}`]),
    ...(most === undefined ? [] : [`at most ${String(most)}`]),
  ];
  return [String(type), bounds.join(" and ")].filter((words) => words !== "").join(", ");
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
