import { z } from "zod";
import { JsonSize, MESSAGE_BOUNDS } from "../../security/json-size.ts";
import { formOf, formsOf, isOptional, kindOf, kindOfForm, shapeOf, wordsOf, type Schema } from "./schema.ts";

/** Characters of JSON text that are read in one call. */
const MOST_CHARACTERS = 1_048_576;

/**
 * Arguments as clients send them, into what is meant. Models in strict mode send every parameter, with null or "" for those they do
 * not mean: for one that is optional both mean that it is not given. Some clients send an array, an object, a number or true and
 * false as JSON text: it is read where the schema takes no text but fixed words, and takes what the text says.
 */
export class Reading {
  #left = MOST_CHARACTERS;

  /** Some text was read: what was inside it has not been looked at. */
  get hasRead(): boolean {
    return this.#left < MOST_CHARACTERS;
  }

  /** Leaves what is required as it is: it is refused. */
  of(schema: Schema, given: unknown): unknown {
    const value = typeof given === "string" ? this.#ofText(schema, given) : given;
    if (typeof value !== "object" || value === null) return value;
    const form = formOf(schema, value);
    if (form instanceof z.ZodArray && Array.isArray(value)) {
      return value.map((each: unknown) => this.of(form.element, each));
    }
    // The names are the caller's, so every entry is kept, whatever its value.
    if (form instanceof z.ZodRecord) return withEach(value, (_, each) => this.of(form.valueType, each));
    const shape = shapeOf(form);
    if (!shape) return value;
    const at = (name: string) => (Object.hasOwn(shape, name) ? shape[name] : undefined);
    const meant = Object.entries(value).filter(
      ([name, each]) => !isOptional(at(name)) || (each !== null && each !== ""),
    );
    return withEach(Object.fromEntries(meant), (name, each) => {
      const below = at(name);
      return below ? this.of(below, each) : each;
    });
  }

  #ofText(schema: Schema, text: string): unknown {
    // Fixed words are told from JSON, any other text is not.
    const forms = formsOf(schema).filter((form) => typeof wordsOf(form)[0] !== "string");
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

/** Undefined for what is no JSON. */
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
