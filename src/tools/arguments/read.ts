import { z } from "zod";
import { JsonSize, MESSAGE_BOUNDS } from "../../security/json-size.ts";
import { findForm, formsOf, isOptional, kindOf, kindOfForm, shapeOf, fixedValues, type Schema } from "./schema.ts";

/** Maximum number of characters of JSON text parsed in one call. */
const MOST_CHARACTERS = 1_048_576;

/**
 * Normalizes arguments as clients send them. Models in strict mode send every parameter, with `null` or "" for an omitted one;
 * both are dropped for optional fields. Some clients send arrays, objects, numbers or booleans as JSON text; a text is parsed
 * if the schema accepts the parsed kind and no free text.
 */
export class ArgumentReader {
  #left = MOST_CHARACTERS;

  /** True if JSON text was parsed, so that its content still needs checks. */
  get hasParsedText(): boolean {
    return this.#left < MOST_CHARACTERS;
  }

  /** Keeps `null` or "" in required fields, for a later error. */
  read(schema: Schema, given: unknown): unknown {
    const value = typeof given === "string" ? this.#ofText(schema, given) : given;
    if (typeof value !== "object" || value === null) return value;
    const form = findForm(schema, value);
    if (form instanceof z.ZodArray && Array.isArray(value)) {
      return value.map((each: unknown) => this.read(form.element, each));
    }
    // Keeps entries of any value, because the names are the caller's.
    if (form instanceof z.ZodRecord) return withEach(value, (_, each) => this.read(form.valueType, each));
    const shape = shapeOf(form);
    if (!shape) return value;
    const at = (name: string) => (Object.hasOwn(shape, name) ? shape[name] : undefined);
    const meant = Object.entries(value).filter(
      ([name, each]) => !isOptional(at(name)) || (each !== null && each !== ""),
    );
    return withEach(Object.fromEntries(meant), (name, each) => {
      const below = at(name);
      return below ? this.read(below, each) : each;
    });
  }

  #ofText(schema: Schema, text: string): unknown {
    // Fixed words are distinguishable from JSON text, free text is not.
    const forms = formsOf(schema).filter((form) => typeof fixedValues(form)[0] !== "string");
    const kinds = forms.map(kindOfForm);
    if (kinds.includes("string") || kinds.includes(undefined) || text.length > this.#left) return text;
    const size = new JsonSize();
    size.take(Buffer.from(text));
    if (size.exceeded(MESSAGE_BOUNDS)) return text;
    const value = parsed(text);
    if (!kinds.includes(kindOf(value))) return text;
    this.#left -= text.length;
    return value;
  }
}

/** Returns `undefined` for invalid JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withEach(value: object, change: (name: string, each: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(value).map(([name, each]: [string, unknown]) => [name, change(name, each)]));
}
