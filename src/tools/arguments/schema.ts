import { z } from "zod";
import { nearest } from "../../domain/suggest.ts";

/** Reads off the schema of an argument the kinds of value that it takes, and which of several forms a value has. */

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

/** Without what says that it may be left out, or what becomes of its value. */
export function unwrapped(schema: Schema): Schema {
  if (isOptional(schema)) return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe && !(schema.in instanceof z.ZodTransform) ? unwrapped(schema.in) : schema;
}

/** Returns the options as they are listed. */
export function optionsOf(schema: Schema | undefined): readonly Schema[] {
  if (!schema) return [];
  const inner = unwrapped(schema);
  return inner instanceof z.ZodUnion ? inner.options : [inner];
}

/** The forms that a value may have; of an option that has several, each. */
export function formsOf(schema: Schema | undefined): readonly Schema[] {
  const options = optionsOf(schema);
  return options.length > 1 ? options.flatMap(formsOf) : options;
}

/** Undefined for a form that takes any kind. */
export function kindOfForm(form: Schema): Kind | undefined {
  if (form instanceof z.ZodArray) return "array";
  if (form instanceof z.ZodBoolean) return "boolean";
  if (form instanceof z.ZodNumber) return "number";
  if (form instanceof z.ZodObject || form instanceof z.ZodRecord) return "object";
  if (form instanceof z.ZodString || form instanceof z.ZodStringFormat) return "string";
  const [word] = wordsOf(form);
  return kindOf(word);
}

/** The values of a form that takes no others. */
export function wordsOf(schema: Schema | undefined): readonly unknown[] {
  const form = schema && unwrapped(schema);
  if (form instanceof z.ZodLiteral) return [...form.values];
  return form instanceof z.ZodEnum ? form.options : [];
}

type Shape = Readonly<Record<string, Schema>>;

export function shapeOf(form: Schema | undefined): Shape | undefined {
  return form instanceof z.ZodObject ? form.shape : undefined;
}

/** The form that is meant: by the kind of the value, then by its fixed words and its names. Undefined where that does not tell. */
export function formOf(schema: Schema | undefined, value: unknown): Schema | undefined {
  return meantOf(formsOf(schema), value);
}

/** `formOf` among some of the forms. */
export function meantOf(forms: readonly Schema[], value: unknown): Schema | undefined {
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

/** Names of a value that are looked at: a message may have as many as it has room for. */
const MOST_NAMES = 50;
/** Each outweighs all that stand below it. */
const RANKS = { word: 10_000, name: 100, whole: 60, similar: 1 };

function rankOf(shape: Shape, shapes: readonly Shape[], value: object): number {
  const names = Object.keys(shape);
  const isWhole = names.every((name) => isOptional(shape[name]) || Object.hasOwn(value, name));
  const ranks = Object.entries(value)
    .slice(0, MOST_NAMES)
    .map(([name, each]: [string, unknown]) => {
      if (Object.hasOwn(shape, name)) return wordsOf(shape[name]).includes(each) ? RANKS.word : RANKS.name;
      const isKnown = shapes.some((other) => Object.hasOwn(other, name));
      return isKnown || nearest(name, names) === undefined ? 0 : RANKS.similar;
    });
  return ranks.reduce((sum, rank) => sum + rank, isWhole ? RANKS.whole : 0);
}

/** The schema of what is at a path below a value; undefined where it knows no such place. */
export function schemaAt(schema: Schema | undefined, value: unknown, path: readonly PropertyKey[]): Schema | undefined {
  const [name, ...deeper] = path;
  if (name === undefined) return schema;
  const form = formOf(schema, value);
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
