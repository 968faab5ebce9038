import { z } from "zod";

/**
 * Models in strict mode send every parameter, with null or "" for those they do not mean: for one that is optional both
 * mean that it is not given. What is required is left as it is, and refused.
 */
export function withoutEmpty(schema: z.core.$ZodType | undefined, value: unknown): unknown {
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
