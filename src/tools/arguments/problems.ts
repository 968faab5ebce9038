import type { z } from "zod";
import { nearest } from "../../domain/suggest.ts";

/** From zod's findings to sentences that begin behind "field: ". */

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

export interface Problem {
  readonly path: Path;
  /** Called for those that are told: there may be as many as names in a message. */
  readonly text: () => string;
}

/** The names that are allowed in the object at a path. */
type Offered = (path: Path) => readonly string[];

export function problemsOf(issue: Issue, base: Path, offered: Offered): Problem[] {
  const path = [...base, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    // What is allowed is said once.
    return issue.keys.map((key, index) => ({
      path: [...path, key],
      text: () => unknownName(key, offered(path), index === 0),
    }));
  }
  if (issue.code !== "invalid_union") return [{ path, text: () => problemOf(issue) }];
  const meant = formMeant(issue.errors);
  return meant ? meant.flatMap((each) => problemsOf(each, path, offered)) : [{ path, text: () => noForm(issue) }];
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

/** The value has the shape of no form: it lacks the word that tells them apart, or is another kind of value. */
function noForm({ errors, input, ...issue }: Union): string {
  if (!("options" in issue) || !Array.isArray(issue.options))
    return mustBe([...new Set(errors.flatMap(wrongKind))].join(" or "), input);
  return `must be one of ${issue.options.join(", ")}.`;
}

/**
 * Of the forms a value may have, the findings of the one that was most likely meant; undefined when it has the shape of
 * none. Forms that differ in a fixed word are told apart by it.
 */
function formMeant(forms: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const alike = forms.filter((form) => wrongKind(form).length === 0);
  const words = alike.map((form) => form.find((issue) => issue.code === "invalid_value"));
  const [first] = words;
  if (first && words.every((word) => word !== undefined)) {
    return [{ ...first, values: words.flatMap(({ values }) => values) }];
  }
  return alike.toSorted((a, b) => distance(a) - distance(b))[0];
}

function distance(form: readonly Issue[]): number {
  return form.length + (form.some((issue) => issue.code === "invalid_value") ? 100 : 0);
}

function wrongKind(form: readonly Issue[]): string[] {
  return form.flatMap((issue) =>
    issue.code === "invalid_type" && issue.path.length === 0 ? [kindName(issue.expected)] : [],
  );
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
  return `must be ${kind}${given(input)}.`;
}

/** What Claude Code once took and no longer does. */
const GONE: ReadonlyMap<string, string> = new Map([
  ["delegate", " That permission mode no longer exists in Claude Code."],
]);

function wrongWord(values: readonly string[], input: unknown): string {
  const one = values.length === 1 ? String(values[0]) : `one of ${values.join(", ")}`;
  if (input === undefined) return `is required: ${one}.`;
  const word = typeof input === "string" ? input : "";
  return `must be ${one}${given(input)}.${GONE.get(word) ?? didYouMean(word, values)}`;
}

function unknownName(name: string, names: readonly string[], isFirst: boolean): string {
  return `unknown option.${didYouMean(name, names)}${isFirst ? ` Allowed: ${names.join(", ")}.` : ""}`;
}

function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : ` Did you mean ${near}?`;
}

function bound(withIt: string, withoutIt: string, inclusive: boolean | undefined): string {
  return inclusive === false ? withoutIt : withIt;
}

function outOfBounds(origin: string, within: string, limit: number | bigint, input: unknown): string {
  const most = String(limit);
  if (origin === "string")
    return `must have ${within} ${most} ${most === "1" ? "character" : "characters"}${given(input)}.`;
  if (origin !== "array") return `must be ${within} ${most}${given(input)}.`;
  const entries = most === "1" ? "entry" : "entries";
  return `must have ${within} ${most} ${entries}${Array.isArray(input) ? `, not ${String(input.length)}` : ""}.`;
}

/** The value in question, when it is short enough to be told. */
function given(input: unknown): string {
  if (typeof input === "string") return input.length > 60 ? "" : `, not ${JSON.stringify(input)}`;
  if (typeof input === "number" || typeof input === "boolean" || input === null) return `, not ${String(input)}`;
  if (Array.isArray(input)) return ", not an array";
  return typeof input === "object" ? ", not an object" : "";
}
