import type { Constants } from "../../../src/config/constants.ts";
import { CONSTANTS_VARIABLE } from "../../../src/domain/names.ts";

/** Returns the variable that replaces values of src/config/constants.ts in a server. */
export function constants(values: Partial<Constants>): Record<string, string> {
  return { [CONSTANTS_VARIABLE]: JSON.stringify(values) };
}

/** Merges environments: later variables override earlier ones, but constants are merged. */
export function merged(...all: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const joined = all.flatMap(({ [CONSTANTS_VARIABLE]: text }) => (text === undefined ? [] : valuesIn(text)));
  const variables = Object.fromEntries(all.flatMap((each) => Object.entries(each)));
  return joined.length === 0 ? variables : { ...variables, ...constants(Object.fromEntries(joined)) };
}

function valuesIn(text: string): [string, unknown][] {
  return Object.entries(JSON.parse(text) as Partial<Constants>);
}
