import { isDeepStrictEqual } from "node:util";
import { invalidArgument } from "../../domain/error.ts";

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
