import type { z } from "zod";
import { didYouMean } from "../../domain/suggest.ts";
import {
  formsOf,
  isOptional,
  kindOf,
  kindOfForm,
  chooseForm,
  optionsOf,
  schemaAt,
  shapeOf,
  valueBelow,
  fixedValues,
  type Schema,
} from "./schema.ts";

/** Converts zod issues to sentences, for use after "field: ". */

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

export interface Problem {
  readonly path: Path;
  /** A function because only the first problems are reported, and a message may have very many names. */
  readonly text: () => string;
}

/** A rejected value. */
interface InvalidValue {
  readonly path: Path;
  /** `undefined` if the schema of the arguments has nothing at `path`. */
  readonly schema: Schema | undefined;
  readonly value: unknown;
  /** Names accepted in the value but not suggested. */
  readonly unlisted?: readonly string[];
}

export function problemsOf(issue: Issue, place: InvalidValue): Problem[] {
  const path = [...place.path, ...issue.path];
  const schemaOf = (at: Path) => schemaAt(place.schema, place.value, at);
  if (issue.code === "unrecognized_keys") {
    const { unlisted = [] } = issue.path.length === 0 ? place : {};
    return unknownNames(issue.keys, path, () => {
      // zod has tried a form without these names: find the form among all.
      const forms = formsOf(schemaOf(issue.path)).filter((form) => issue.keys.every((key) => !shapeOf(form)?.[key]));
      return Object.keys(shapeOf(chooseForm(forms, issue.input)) ?? {}).filter((name) => !unlisted.includes(name));
    });
  }
  if (issue.code !== "invalid_union") return [{ path, text: () => problemOf(issue) }];
  // If no form has the given word, zod's path ends at the word instead of the union.
  const depth = issue.errors.length > 0 ? path.length : path.length - 1;
  const schema = schemaOf(issue.path.slice(0, depth - place.path.length));
  return unionProblems(issue, { path: path.slice(0, depth), schema, value: issue.input });
}

/** Lists the allowed names only in the first problem. */
function unknownNames(names: readonly string[], path: Path, allowed: () => readonly string[]): Problem[] {
  return names.map((name, index) => ({
    path: [...path, name],
    text: () => unknownName(name, allowed(), index === 0),
  }));
}

type Plain = Exclude<Issue, { code: "unrecognized_keys" | "invalid_union" }>;

function problemOf(issue: Plain): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required." : mustBe(kindName(issue.expected), issue.input);
    case "invalid_value":
      return wrongWord(issue.values.map(String), issue.input);
    case "too_small":
      if (issue.origin === "string" && issue.minimum === 1) return "must not be empty.";
      return outOfBounds(issue.origin, bound("at least", "greater than", issue.inclusive), issue.minimum, issue.input);
    case "too_big":
      return outOfBounds(issue.origin, bound("at most", "less than", issue.inclusive), issue.maximum, issue.input);
    case "invalid_format":
      return issue.format === "url" ? mustBe("a URL", issue.input) : `${issue.message}.`;
    case "invalid_key":
      return "has a name that is empty or not allowed.";
    case "custom":
    case "invalid_element":
    case "not_multiple_of":
      return `${issue.message}.`;
  }
}

type Union = Extract<Issue, { code: "invalid_union" }>;

/** Returns the problems of the form most likely meant, for a value with several possible forms. */
function unionProblems({ errors }: Union, { path, schema, value }: InvalidValue): Problem[] {
  const forms = formsOf(schema);
  const alike = forms.filter((form) => (kindOfForm(form) ?? kindOf(value)) === kindOf(value));
  if (alike.every((form) => fixedValues(form).length > 0)) return [{ path, text: () => noMatchingForm(forms, value) }];
  const telling = findDiscriminator(alike);
  const word = telling === undefined ? undefined : valueBelow(value, telling);
  const form = chooseForm(forms, value);
  const options = optionsOf(schema);
  const index = options.findIndex((option) => form !== undefined && formsOf(option).includes(form));
  if (telling !== undefined && word !== undefined && !wordsAt(alike, telling).includes(word))
    return [wrongDiscriminator(path, telling, alike, word)];
  const found = errors[index]?.flatMap((issue) => problemsOf(issue, { path, schema: options[index], value }));
  if (found) return found;
  const meant = form ? [form] : alike;
  if (telling !== undefined && meant.every((each) => !isOptional(shapeOf(each)?.[telling])))
    return [wrongDiscriminator(path, telling, meant, word)];
  return ambiguousForm(alike, path, value);
}

/** Returns the field whose fixed words distinguish the forms. */
function findDiscriminator(forms: readonly Schema[]): string | undefined {
  const [first, ...others] = forms.map((form) => shapeOf(form) ?? {});
  if (!first || others.length === 0) return undefined;
  return Object.keys(first).find((name) => [first, ...others].every((shape) => fixedValues(shape[name]).length > 0));
}

function wrongDiscriminator(path: Path, name: string, forms: readonly Schema[], word: unknown): Problem {
  const words = wordsAt(forms, name).map(String);
  return { path: [...path, name], text: () => wrongWord(words, word) };
}

function wordsAt(forms: readonly Schema[], name: string): readonly unknown[] {
  return forms.flatMap((form) => fixedValues(shapeOf(form)?.[name]));
}

/** Reports the required fields of each form, for a value equally close to several forms. */
function ambiguousForm(forms: readonly Schema[], path: Path, value: unknown): Problem[] {
  const shapes = forms.map((form) => shapeOf(form) ?? {});
  const needs = shapes.map((shape) => Object.keys(shape).filter((name) => !isOptional(shape[name])));
  const text = () => `must have ${needs.map((each) => each.join(" and ")).join(", or ")}.`;
  const allowed = [...new Set(shapes.flatMap((shape) => Object.keys(shape)))];
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const unknown = names.filter((name) => !allowed.includes(name));
  return [{ path, text }, ...unknownNames(unknown, path, () => allowed)];
}

/** Describes a value of a kind, or a word, that no form accepts. */
function noMatchingForm(forms: readonly Schema[], value: unknown): string {
  const words = forms.flatMap(fixedValues).map(String);
  const others = forms
    .filter((form) => fixedValues(form).length === 0)
    .map((form) => kindName(kindOfForm(form) ?? "value"));
  const known = words.length > 0 ? [oneOf(words)] : [];
  const all = [...known, ...new Set(others)].join(words.length > 1 ? ", or " : " or ");
  return `${mustBe(all, value)}${typeof value === "string" ? didYouMean(value, words) : ""}`;
}

const KINDS: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};

function kindName(kind: string): string {
  return KINDS[kind] ?? kind;
}

function mustBe(kind: string, input: unknown): string {
  return `must be ${kind}${quoteValue(input)}.`;
}

/** Words accepted by earlier versions of Claude Code. */
const REMOVED_WORDS: ReadonlyMap<string, string> = new Map([
  ["delegate", " That permission mode no longer exists in Claude Code."],
]);

function wrongWord(values: readonly string[], input: unknown): string {
  if (input === undefined) return `is required: ${oneOf(values)}.`;
  const word = typeof input === "string" ? input : "";
  return `must be ${oneOf(values)}${quoteValue(input)}.${REMOVED_WORDS.get(word) ?? didYouMean(word, values)}`;
}

function oneOf(words: readonly string[]): string {
  return words.length === 1 ? String(words[0]) : `one of ${words.join(", ")}`;
}

function unknownName(name: string, names: readonly string[], isFirst: boolean): string {
  return `unknown option.${didYouMean(name, names)}${isFirst && names.length > 0 ? ` Allowed: ${names.join(", ")}.` : ""}`;
}

function bound(withIt: string, withoutIt: string, inclusive: boolean | undefined): string {
  return inclusive === false ? withoutIt : withIt;
}

function outOfBounds(origin: string, within: string, limit: number | bigint, input: unknown): string {
  const most = String(limit);
  if (origin === "string")
    return `must have ${within} ${most} ${most === "1" ? "character" : "characters"}${quoteValue(input)}.`;
  if (origin !== "array") return `must be ${within} ${most}${quoteValue(input)}.`;
  const entries = most === "1" ? "entry" : "entries";
  return `must have ${within} ${most} ${entries}${Array.isArray(input) ? `, not ${String(input.length)}` : ""}.`;
}

/** Quotes the value if short, otherwise names its kind. */
function quoteValue(input: unknown): string {
  if (typeof input === "string") return input.length > 60 ? "" : `, not ${JSON.stringify(input)}`;
  if (typeof input === "number" || typeof input === "boolean" || input === null) return `, not ${String(input)}`;
  if (Array.isArray(input)) return ", not an array";
  return typeof input === "object" ? ", not an object" : "";
}
