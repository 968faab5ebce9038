import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import { withoutEmpty } from "./not-given.ts";
import { pathName, refuseOddText } from "../../engine/actions/odd-text.ts";
import { problemsOf, type Problem } from "./problems.ts";

/**
 * Arguments come from models: whatever is wrong with them is said in words that name the field and what would be right,
 * so that the next call can be. Unknown names are wrong at any depth, since a misspelt option would be a silent default.
 */

/** Nobody reads further: what is behind them is not looked at. */
const PROBLEMS_TOLD = 20;

/** `unlisted` names of the schema are accepted without being offered. Throws INVALID_ARGUMENT. */
export function parseArguments<I extends z.ZodObject>(
  input: I,
  raw: unknown,
  unlisted: readonly string[],
): z.output<I> {
  refuseOddText(raw);
  const parsed = input.safeParse(withoutEmpty(input, raw ?? {}), { reportInput: true });
  if (parsed.success) return parsed.data;
  // The schema costs more than the parse: it is made for a name that is told to be unknown, and for nothing else.
  const offered = (path: readonly PropertyKey[]) => {
    const schema = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
    return namesAt(schema, path).filter((name) => path.length > 0 || !unlisted.includes(name));
  };
  const problems: Problem[] = [];
  for (const issue of parsed.error.issues) {
    if (problems.length > PROBLEMS_TOLD) break;
    problems.push(...problemsOf(issue, [], offered));
  }
  const told = problems.slice(0, PROBLEMS_TOLD).map(({ path, text }) => `${pathName(path)}: ${text()}`);
  throw new AppError("INVALID_ARGUMENT", told.join(" ") + (problems.length > PROBLEMS_TOLD ? " And others." : ""));
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
