import type { JsonObject } from "../../../src/domain/json.ts";

/** Readers for unchecked JSON: `undefined` if the field is missing or has another type. */

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectAt(object: JsonObject, key: string): JsonObject | undefined {
  const value = object[key];
  return isObject(value) ? value : undefined;
}

export function objectsAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = object[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textAt(object: JsonObject, key: string): string | undefined {
  const value = object[key];
  return typeof value === "string" ? value : undefined;
}

export function numberAt(object: JsonObject, key: string): number | undefined {
  const value = object[key];
  return typeof value === "number" ? value : undefined;
}

/** `undefined` unless the value is a list of texts alone. */
export function textsAt(object: JsonObject, key: string): readonly string[] | undefined {
  const value: unknown = object[key];
  return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : undefined;
}
