import { z } from "zod";
import { nearest } from "../../domain/suggest.ts";

/** Inspects schemas of arguments: accepted kinds of values, and the form (union member) of a value. */

export type Schema = z.core.$ZodType;
export type Kind = "array" | "boolean" | "null" | "number" | "object" | "string";

export function kindOf(value: unknown): Kind | undefined {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const kind = typeof value;
  return kind === "boolean" || kind === "number" || kind === "object" || kind === "string" ? kind : undefined;
}

export function isOptional(schema: Schema | undefined): schema is z.ZodOptional | z.ZodExactOptional | z.ZodDefault {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault;
}

/** Removes optionality, defaults and output transforms. */
export function unwrapped(schema: Schema): Schema {
  if (isOptional(schema)) return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe && !(schema.in instanceof z.ZodTransform) ? unwrapped(schema.in) : schema;
}

/** Returns the options of a union, in their order; otherwise the schema alone. */
export function optionsOf(schema: Schema | undefined): readonly Schema[] {
  if (!schema) return [];
  const inner = unwrapped(schema);
  return inner instanceof z.ZodUnion ? inner.options : [inner];
}

/** Returns all possible forms of a value, nested unions flattened. */
export function formsOf(schema: Schema | undefined): readonly Schema[] {
  const options = optionsOf(schema);
  return options.length > 1 ? options.flatMap(formsOf) : options;
}

/** Returns `undefined` for a form of any kind. */
export function kindOfForm(form: Schema): Kind | undefined {
  if (form instanceof z.ZodArray) return "array";
  if (form instanceof z.ZodBoolean) return "boolean";
  if (form instanceof z.ZodNumber) return "number";
  if (form instanceof z.ZodObject || form instanceof z.ZodRecord) return "object";
  if (form instanceof z.ZodString || form instanceof z.ZodStringFormat) return "string";
  const [word] = fixedValues(form);
  return kindOf(word);
}

/** Returns the fixed values of a literal or enum; otherwise an empty list. */
export function fixedValues(schema: Schema | undefined): readonly unknown[] {
  const form = schema && unwrapped(schema);
  if (form instanceof z.ZodLiteral) return [...form.values];
  return form instanceof z.ZodEnum ? form.options : [];
}

type Shape = Readonly<Record<string, Schema>>;

export function shapeOf(form: Schema | undefined): Shape | undefined {
  return form instanceof z.ZodObject ? form.shape : undefined;
}

/** Chooses the form of `value` by kind, then by fixed words and names. `undefined` if ambiguous. */
export function findForm(schema: Schema | undefined, value: unknown): Schema | undefined {
  return chooseForm(formsOf(schema), value);
}

/** Like `findForm`, among some of the forms. */
export function chooseForm(forms: readonly Schema[], value: unknown): Schema | undefined {
  const kind = kindOf(value);
  const alike = forms.filter((form) => (kindOfForm(form) ?? kind) === kind);
  if (alike.length <= 1 || typeof value !== "object" || value === null) return alike[0];
  const shapes = alike.map((form) => shapeOf(form) ?? {});
  const ranked = alike
    .map((form, index) => ({ form, rank: rankOf(shapes[index] ?? {}, shapes, value) }))
    .toSorted((a, b) => b.rank - a.rank);
  const [first, second] = ranked;
  return first && second && first.rank > second.rank ? first.form : undefined;
}

/** Maximum number of names to compare; a message may have very many. */
const MOST_NAMES = 50;
/** Weights of matches. A single `word` outweighs any number of names (at most `MOST_NAMES`). */
const RANKS = { word: 10_000, name: 100, whole: 60, similar: 1 };

function rankOf(shape: Shape, shapes: readonly Shape[], value: object): number {
  const names = Object.keys(shape);
  const isWhole = names.every((name) => isOptional(shape[name]) || Object.hasOwn(value, name));
  const ranks = Object.entries(value)
    .slice(0, MOST_NAMES)
    .map(([name, each]: [string, unknown]) => {
      if (Object.hasOwn(shape, name)) return fixedValues(shape[name]).includes(each) ? RANKS.word : RANKS.name;
      const isKnown = shapes.some((other) => Object.hasOwn(other, name));
      return isKnown || nearest(name, names) === undefined ? 0 : RANKS.similar;
    });
  return ranks.reduce((sum, rank) => sum + rank, isWhole ? RANKS.whole : 0);
}

/** Returns the schema at `path` inside `value`; `undefined` if the schema has nothing there. */
export function schemaAt(schema: Schema | undefined, value: unknown, path: readonly PropertyKey[]): Schema | undefined {
  const [name, ...deeper] = path;
  if (name === undefined) return schema;
  const form = findForm(schema, value);
  const below = form && schemaBelow(form, String(name));
  return schemaAt(below, valueBelow(value, name), deeper);
}

function schemaBelow(form: Schema, name: string): Schema | undefined {
  if (form instanceof z.ZodArray) return form.element;
  if (form instanceof z.ZodRecord) return form.valueType;
  const shape = shapeOf(form) ?? {};
  return Object.hasOwn(shape, name) ? shape[name] : undefined;
}

export function valueBelow(value: unknown, name: PropertyKey): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}
