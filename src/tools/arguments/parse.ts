import { isDeepStrictEqual } from "node:util";
import type { z } from "zod";
import { AppError, invalidArgument } from "../../domain/error.ts";
import { pathName, refuseUnsafeText } from "../../engine/actions/unsafe-text.ts";
import { problemsOf, type Problem } from "./problems.ts";
import { ArgumentReader } from "./read.ts";

/**
 * Parses arguments written by models. Each error names the field and the right value, so that the next call can succeed.
 * Unknown names are errors at any depth, because a misspelt option would silently keep its default.
 */

/** Maximum number of reported problems. */
const MAX_PROBLEMS = 20;

/** Accepts names in `unlisted`, but never suggests them in an error. Throws INVALID_ARGUMENT. */
export function parseArguments<I extends z.ZodObject>(
  input: I,
  raw: unknown,
  unlisted: readonly string[],
): z.output<I> {
  refuseUnsafeText(raw);
  const reading = new ArgumentReader();
  const value = reading.read(input, raw ?? {});
  if (reading.hasParsedText) refuseUnsafeText(value);
  const parsed = input.safeParse(value, { reportInput: true });
  if (parsed.success) return parsed.data;
  const problems: Problem[] = [];
  for (const issue of parsed.error.issues) {
    if (problems.length > MAX_PROBLEMS) break;
    problems.push(...problemsOf(issue, { path: [], schema: input, value, unlisted }));
  }
  const texts = problems.slice(0, MAX_PROBLEMS).map(({ path, text }) => `${pathName(path)}: ${text()}`);
  throw new AppError(
    "INVALID_ARGUMENT",
    texts.join(" ") + (problems.length > MAX_PROBLEMS ? " There are more problems." : ""),
  );
}

/**
 * Merges options given at the top level (`flat`) with options inside `field` (`nested`). Throws INVALID_ARGUMENT for an option
 * with two different values.
 */
export function mergeOptions<F extends object, N extends object>(flat: F, nested: N, field: string): F & N {
  const given = new Map<string, unknown>(Object.entries(flat));
  for (const [name, value] of Object.entries(nested)) {
    const beside = given.get(name);
    if (beside !== undefined && !isDeepStrictEqual(beside, value)) {
      throw invalidArgument(`${field}.${name}`, `differs from ${name}, which is given too. Give it once.`);
    }
  }
  return { ...flat, ...nested };
}
