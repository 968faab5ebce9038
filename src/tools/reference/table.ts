import type { z } from "zod";

/** A JSON Schema in words, as rows of a Markdown table: for the docs, and for what the server tells of its options. */

export type Schema = z.core.JSONSchema.BaseSchema;

interface Row {
  readonly name: string;
  readonly required: boolean;
  readonly type: string;
  /** What it means, its default left out; empty where the name says it all. */
  readonly meaning: string;
  /** In words; undefined where none is told. */
  readonly fallback: string | undefined;
}

/** What may stand for each name of an object, and what it means. */
export function rowsOf({ properties = {}, required = [] }: Schema): Row[] {
  return Object.entries(properties)
    .filter((entry): entry is [string, Schema] => isSchema(entry[1]))
    .map(([name, schema]) => ({
      name,
      required: required.includes(name),
      type: typeOf(schema),
      ...described(schema.description ?? ""),
    }));
}

const DEFAULT = "Default: ";

function described(text: string): Pick<Row, "meaning" | "fallback"> {
  const at = text.lastIndexOf(DEFAULT);
  if (at < 0) return { meaning: sentence(text), fallback: undefined };
  return { meaning: sentence(text.slice(0, at).trim()), fallback: text.slice(at + DEFAULT.length) };
}

function sentence(text: string): string {
  if (text === "") return "";
  const begun = text.startsWith("ms ") ? text : `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return begun.endsWith(".") ? begun : `${begun}.`;
}

/** All that a row says of its name, in one cell. */
export function wordsOf({ required, meaning, fallback }: Row): string {
  const words = [required ? "Required." : "", meaning, fallback === undefined ? "" : `${DEFAULT}${fallback}.`];
  return words.filter((word) => word !== "").join(" ");
}

export const code = (text: unknown): string => `\`${String(text)}\``;

function typeOf(schema: Schema): string {
  if (schema.enum) return schema.enum.map(code).join(", ");
  if (schema.const !== undefined) return code(schema.const);
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return [...new Set(forms.filter(isSchema).map(typeOf))].join(" or ");
  if (schema.type === "array") return `array of ${isSchema(schema.items) ? typeOf(schema.items) : "object"}`;
  return schema.type === "integer" || schema.type === "number" ? range(schema) : String(schema.type);
}

function range({ exclusiveMinimum, maximum, minimum, type }: Schema): string {
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

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [head, head.map(() => "---"), ...rows].map(line).join("\n");
}
