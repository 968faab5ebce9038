import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { AppError, invalidArgument } from "../../domain/error.ts";
import { pathName, refuseUnsafeText } from "../../engine/actions/unsafe-text.ts";
import { problemsOf, type Problem } from "./problems.ts";

/**
 * Arguments come from models: whatever is wrong with them is said in words that name the field and what would be right,
 * so that the next call can be. Unknown names are wrong at any depth, since a misspelt option would be a silent default.
 */

/** Maximum number of problems that are reported; validation stops there. */
const MAX_PROBLEMS = 20;

/** `unlisted` names of the schema are accepted without being offered. Throws INVALID_ARGUMENT. */
export function parseArguments<I extends z.ZodObject>(
  input: I,
  raw: unknown,
  unlisted: readonly string[],
): z.output<I> {
  refuseUnsafeText(raw);
  const parsed = input.safeParse(withoutEmpty(input, raw ?? {}), { reportInput: true });
  if (parsed.success) return parsed.data;
  // The schema costs more than the parse: it is made only to report an unknown name.
  const offered = (path: readonly PropertyKey[]) => {
    const schema = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
    return namesAt(schema, path).filter((name) => path.length > 0 || !unlisted.includes(name));
  };
  const problems: Problem[] = [];
  for (const issue of parsed.error.issues) {
    if (problems.length > MAX_PROBLEMS) break;
    problems.push(...problemsOf(issue, [], offered));
  }
  const texts = problems.slice(0, MAX_PROBLEMS).map(({ path, text }) => `${pathName(path)}: ${text()}`);
  throw new AppError("INVALID_ARGUMENT", texts.join(" ") + (problems.length > MAX_PROBLEMS ? " And others." : ""));
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The names that an object may have at this place, whichever of its forms is meant. */
function namesAt(schema: JsonSchema, path: readonly PropertyKey[]): string[] {
  const forms = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
  const [name, ...deeper] = path;
  if (name === undefined) return [...new Set(forms.flatMap((form) => Object.keys(form.properties ?? {})))];
  const below = forms.flatMap((form) =>
    [form.properties?.[String(name)], form.items, form.additionalProperties].flat(),
  );
  return [...new Set(below.filter(isSchema).flatMap((each) => namesAt(each, deeper)))];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

/**
 * Models in strict mode send every parameter, with null or "" for those they do not mean: for one that is optional both
 * mean that it is not given. What is required is left as it is, and refused.
 */
function withoutEmpty(schema: z.core.$ZodType | undefined, value: unknown): unknown {
  if (!schema) return value;
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((each: unknown) => withoutEmpty(inner.element, each));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (inner instanceof z.ZodRecord) return withoutEmptyInside(inner, value);
  const shape = shapeFor(inner, value);
  if (!shape) return value;
  const given = Object.entries(value).filter(
    ([key, each]) => !isOptional(shape, key) || (each !== null && each !== ""),
  );
  return Object.fromEntries(
    given.map(([key, each]) => [key, withoutEmpty(Object.hasOwn(shape, key) ? shape[key] : undefined, each)]),
  );
}

/** The names are the caller's, so every entry is kept, whatever its value. */
function withoutEmptyInside({ valueType }: z.ZodRecord, value: object): object {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutEmpty(valueType, each)]));
}

type Shape = Readonly<Record<string, z.core.$ZodType>>;

function isOptional(shape: Shape, key: string): boolean {
  return Object.hasOwn(shape, key) && mayBeLeftOut(shape[key]);
}

function mayBeLeftOut(
  schema: z.core.$ZodType | undefined,
): schema is z.ZodOptional | z.ZodExactOptional | z.ZodDefault {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault;
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  return mayBeLeftOut(schema) ? unwrapped(schema.unwrap()) : schema;
}

/** Of the forms that the value may have, the first that knows all of its names. */
function shapeFor(schema: z.core.$ZodType, value: object): Shape | undefined {
  if (schema instanceof z.ZodObject) return schema.shape;
  if (!(schema instanceof z.ZodUnion)) return undefined;
  const options: readonly z.core.$ZodType[] = schema.options;
  const shapes = options.map((each) => shapeFor(each, value));
  return shapes.find((shape) => shape && Object.keys(value).every((key) => Object.hasOwn(shape, key)));
}

/** Options may stand beside each other or in an object of their own. Throws INVALID_ARGUMENT for one that differs in both. */
export function givenOnce<F extends object, N extends object>(flat: F, nested: N, field: string): F & N {
  const given = new Map<string, unknown>(Object.entries(flat));
  for (const [name, value] of Object.entries(nested)) {
    const beside = given.get(name);
    if (beside !== undefined && !isDeepStrictEqual(beside, value)) {
      throw invalidArgument(`${field}.${name}`, `differs from ${name}, which is given too. Give it once.`);
    }
  }
  return { ...flat, ...nested };
}
