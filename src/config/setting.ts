import { z } from "zod";
import type { ByHand, Reading, SettingClass } from "./schemaless-checks.ts";
import { STORE_ALLOWED, StoreSetting } from "./store.ts";
import { USD_PER_DAY, UsdPerDay } from "../domain/budget.ts";
import { parseRule, type RuleBehavior } from "../domain/approvals/rule.ts";

/** Constructors of settings. Each makes a schema for the value, and registers texts for the help text and the docs. */

/** Texts of a setting. */
interface SettingTexts {
  /** Without dashes. */
  readonly flag: string;
  readonly variable: string;
  /** The first sentence is the line in the help text. */
  readonly meaning: string;
}

export interface Setting extends SettingTexts {
  readonly of: SettingClass;
  /** Key in `Config` and in the file. */
  readonly key: string;
  readonly inFile: boolean;
  readonly reading: Reading;
  /** Text after the flag in the help text; empty for a flag without a value. */
  readonly placeholder: string;
  /** Allowed values, in words that follow "must be". */
  readonly allowed: string;
  /** Default, in words. */
  readonly fallback: string;
  /** Value of a flag that stands alone. `undefined` if a value is required. */
  readonly alone?: string | undefined;
  /** True if colons and semicolons separate words as commas do, because no word contains them. */
  readonly plainWords?: boolean | undefined;
  /**
   * Checks of the schema in a form for the proxy, which loads no schemas. `undefined` if only the schema can check the value.
   */
  readonly byHand?: ByHand | undefined;
}

type Details = Omit<Setting, "key" | "inFile" | "of">;

const details = z.registry<Details>();

interface Range {
  readonly least: number;
  readonly most: number;
  readonly fallback: number;
}

const COUNT = { name: "", placeholder: "<n>" };
const MILLISECONDS = { name: " of ms", placeholder: "<ms>" };
type Unit = typeof COUNT;

function wholeNumber({ least, most, fallback }: Range, unit: Unit, about: SettingTexts) {
  const field = { ...about, ...numberDetails({ least, most }, unit), fallback: String(fallback) };
  return z.int().min(least).max(most).default(fallback).register(details, field);
}

/** `fallback` describes the value in force if nothing is set. */
function optionalWholeNumber(
  { least, most, fallback }: Omit<Range, "fallback"> & { fallback: string },
  unit: Unit,
  about: SettingTexts,
) {
  const field = { ...about, ...numberDetails({ least, most }, unit), fallback };
  return z.int().min(least).max(most).optional().register(details, field);
}

function numberDetails({ least, most }: Omit<Range, "fallback">, { name, placeholder }: Unit) {
  const allowed = `a whole number${name} from ${String(least)} to ${String(most)}`;
  return { reading: "number" as const, placeholder, allowed, byHand: { least, most } };
}

export const count = (range: Range, about: SettingTexts) => wholeNumber(range, COUNT, about);

export const optionalCount = (range: Omit<Range, "fallback">, fallback: string, about: SettingTexts) =>
  optionalWholeNumber({ ...range, fallback }, COUNT, about);

export const milliseconds = (range: Range, about: SettingTexts) => wholeNumber(range, MILLISECONDS, about);

export const optionalMilliseconds = (range: Omit<Range, "fallback">, fallback: string, about: SettingTexts) =>
  optionalWholeNumber({ ...range, fallback }, MILLISECONDS, about);

export function toggle(about: SettingTexts, fallback = false) {
  const allowed = "true or false (1 or 0 are understood too, except in a file)";
  return z
    .boolean()
    .default(fallback)
    .register(details, {
      ...about,
      reading: "boolean",
      placeholder: "",
      allowed,
      fallback: String(fallback),
      byHand: {},
    });
}

export function text(fallback: string, about: SettingTexts) {
  return z
    .string()
    .min(1)
    .optional()
    .register(details, {
      ...about,
      reading: "text",
      placeholder: "<text>",
      allowed: "a non-empty text",
      fallback,
      byHand: {},
    });
}

/** Some fixed words or a chosen name, all of which match `form`. `allowed` describes both. */
export function named(
  form: RegExp,
  { allowed, fallback, placeholder, ...about }: SettingTexts & Pick<Setting, "allowed" | "fallback" | "placeholder">,
) {
  const field = { ...about, reading: "text" as const, placeholder, allowed, fallback, byHand: { form: form.source } };
  return z.string().regex(form).optional().register(details, field);
}

/** `alone` is the value of a flag that stands alone. `undefined` if a value is required. */
export function optionalText(fallback: string, alone: string | undefined, about: SettingTexts) {
  const switched = `; in a variable or the file also true or 1 for ${alone ?? ""}, and false or 0 for ${fallback}`;
  const allowed = `a non-empty text${alone === undefined ? "" : switched}`;
  const placeholder = alone === undefined ? "<text>" : "[<text>]";
  return z
    .string()
    .min(1)
    .optional()
    .register(details, { ...about, reading: "text", placeholder, allowed, fallback, alone });
}

/** Amount of USD per day, with decimals. */
export function usdPerDay(fallback: string, about: SettingTexts) {
  const field = { ...about, reading: "number" as const, placeholder: "<usd>", allowed: USD_PER_DAY, fallback };
  return UsdPerDay.optional().register(details, field);
}

/** A structured value: JSON text in a flag or a variable. */
export function json<T extends z.ZodType>(schema: T, about: SettingTexts, allowed = "a JSON object"): T {
  details.add(schema, { ...about, reading: "json", placeholder: "<json>", allowed, fallback: "none" });
  return schema;
}

const LISTED = "(a list in a file, separated by commas elsewhere)";

/** Words that match `form`, by default any. `allowed` describes them. */
export function words(
  fallback: string,
  { allowed = "non-empty names", form = /[^]/, ...about }: SettingTexts & { allowed?: string; form?: RegExp },
) {
  const texts = { ...about, placeholder: "<a,b>", allowed: `${allowed} ${LISTED}`, fallback };
  return z
    .array(z.string().regex(form))
    .default([])
    .readonly()
    .register(details, { ...texts, reading: "words", byHand: { form: form.source } });
}

/** Words that match `form`, in a meaningful order. */
export function inOrder(
  form: RegExp,
  allowed: string,
  { fallback, ...about }: SettingTexts & { fallback: string; byHand: ByHand },
) {
  return z
    .array(z.string().regex(form))
    .min(1)
    .default(fallback.split(","))
    .readonly()
    .register(details, {
      ...about,
      reading: "words",
      placeholder: "<a,b>",
      allowed: `${allowed} ${LISTED}`,
      fallback,
    });
}

/** Permission rules. An invalid rule has its own error text. */
export function rules(behavior: RuleBehavior, about: SettingTexts) {
  return z
    .array(z.string())
    .superRefine((texts, context) => {
      const parsed = texts.map((each) => parseRule(each, behavior));
      for (const each of parsed) if (!each.ok) context.addIssue({ code: "custom", message: each.problem });
    })
    .default([])
    .readonly()
    .register(details, {
      ...about,
      reading: "words",
      placeholder: "<rules>",
      allowed: `rules, each Tool or Tool(content) ${LISTED}`,
      fallback: "none",
    });
}

/** Some of `values`, at least one. */
export function choices<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: NoInfer<T[number]>,
  about: SettingTexts,
) {
  return z
    .array(z.enum(values))
    .min(1)
    .default([fallback])
    .readonly()
    .register(details, {
      ...about,
      reading: "words",
      placeholder: "<a,b>",
      allowed: `some of ${values.join(", ")} (a list in a file; elsewhere separated by commas, colons or semicolons)`,
      fallback,
      plainWords: true,
      byHand: { values },
    });
}

export function choice<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: NoInfer<T[number]>,
  about: SettingTexts,
) {
  return z
    .enum(values)
    .default(fallback)
    .register(details, {
      ...about,
      reading: "text",
      placeholder: values.join("|"),
      allowed: `one of ${values.join(", ")}`,
      fallback,
      byHand: { values },
    });
}

/** Without a value, other settings decide; `fallback` says how. */
export function optionalChoice<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: string,
  about: SettingTexts,
) {
  const allowed = `one of ${values.join(", ")}`;
  const placeholder = values.join("|");
  return z
    .enum(values)
    .optional()
    .register(details, { ...about, reading: "text", placeholder, allowed, fallback, byHand: { values } });
}

/** Stands in a file for all directories. Unlike an empty list, states the choice, which HTTP requires (`checkConfined`). */
export const ANYWHERE = "any";

/** With `orAnywhere`, a file may have `ANYWHERE`, which is read as the empty list. */
export function directories(fallback: string, about: SettingTexts, orAnywhere = false) {
  const list =
    "directory paths, none of them empty (a list in a file; in a variable separated as in PATH, or by commas)";
  const allowed = orAnywhere ? `${list}, or "${ANYWHERE}" in a file` : list;
  const paths = z.array(z.string().min(1));
  return (orAnywhere ? z.union([z.literal(ANYWHERE).transform((): string[] => []), paths]) : paths)
    .default([])
    .readonly()
    .register(details, { ...about, reading: "directories", placeholder: "<dir>", allowed, fallback, byHand: {} });
}

export function path(fallback: string, about: SettingTexts) {
  return z
    .string()
    .min(1)
    .optional()
    .register(details, { ...about, reading: "path", placeholder: "<path>", allowed: "a path", fallback, byHand: {} });
}

export function storeLocation(fallback: string, about: SettingTexts) {
  return StoreSetting.optional().register(details, {
    ...about,
    reading: "store",
    placeholder: "<path>",
    allowed: STORE_ALLOWED,
    fallback,
    byHand: {},
  });
}

/** Returns the setting for a schema made by a function above. */
export function settingOf(key: string, of: SettingClass, schema: z.ZodType): Setting {
  const known = details.get(schema);
  if (known === undefined) throw new Error(`${key} is not made by one of the functions of setting.ts`);
  return { ...known, key, of, inFile: true };
}
