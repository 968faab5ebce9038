import { z } from "zod";
import { AdvancedOptions, SessionOptions } from "../../domain/options.ts";
import { code, isSchema, rowsOf, table, wordsOf, type Schema } from "./table.ts";

/**
 * The reference of all options of a session, as Markdown: what the listing of `claude_code` leaves out so that it does
 * not stand in the context of every model. Made from the schema that arguments are parsed with.
 */
export function optionsReference(): string {
  const schema: Schema = z.toJSONSchema(SessionOptions, { io: "input" });
  const advanced = Object.keys(AdvancedOptions.shape);
  const isAdvanced = ({ name }: { name: string }) => advanced.includes(name);
  const rows = rowsOf(schema);
  const intro = "An unknown name is an error, at any depth.";
  return [
    "# Options of a session",
    `Given to claude_code, beside \`prompt\`. ${intro}`,
    optionTable(rows.filter((row) => !isAdvanced(row))),
    "## In `advanced`",
    "They may also be given beside the others.",
    optionTable(rows.filter(isAdvanced)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
      isSchema(each) ? sectionsOf(each, name) : [],
    ),
    "",
  ].join("\n\n");
}

function optionTable(rows: ReturnType<typeof rowsOf>): string {
  const cells = rows.map(({ name, type, fallback, required, meaning }) => {
    return [code(name), type, fallback ?? (required ? "required" : ""), meaning];
  });
  return table(["Name", "Type", "Default", "Meaning"], cells);
}

function fieldTable(schema: Schema): string {
  const cells = rowsOf(schema).map((row) => [code(row.name), row.type, wordsOf(row)]);
  return table(["Name", "Type", "Meaning"], cells);
}

/** Where an option is an object, its fields, and those of objects in it. NAME stands for a name that is free. */
function sectionsOf(schema: Schema, path: string): string[] {
  const shapes = shapesOf(schema, path);
  return shapes.flatMap((shape, index) => {
    const form = shapes.length > 1 ? `, form ${String(index + 1)}` : "";
    const nested = Object.entries(shape.schema.properties ?? {}).flatMap(([name, each]) =>
      isSchema(each) ? sectionsOf(each, `${shape.path}.${name}`) : [],
    );
    return [`## ${code(shape.path)}${form}`, fieldTable(shape.schema), ...nested];
  });
}

interface Shape {
  readonly path: string;
  readonly schema: Schema;
}

/** The objects with named fields that may stand at a path. */
function shapesOf(schema: Schema, path: string): Shape[] {
  const forms = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
  if (forms.length > 0) return forms.flatMap((form) => shapesOf(form, path));
  if (schema.properties) return [{ path, schema }];
  if (isSchema(schema.items)) return shapesOf(schema.items, `${path}[]`);
  return isSchema(schema.additionalProperties) ? shapesOf(schema.additionalProperties, `${path}.NAME`) : [];
}
