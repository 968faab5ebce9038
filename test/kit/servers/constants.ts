import type { Constants } from "../../../src/config/constants.ts";
import { CONSTANTS_VARIABLE } from "../../../src/domain/names.ts";

/** Other values of src/config/constants.ts, as the variable in which a server finds them. */
export function constants(values: Partial<Constants>): Record<string, string> {
  return { [CONSTANTS_VARIABLE]: JSON.stringify(values) };
}

/** Of a variable the last one counts; constants are joined. */
export function merged(...all: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const joined = all.flatMap(({ [CONSTANTS_VARIABLE]: text }) => (text === undefined ? [] : valuesIn(text)));
  const variables = Object.fromEntries(all.flatMap((each) => Object.entries(each)));
  return joined.length === 0 ? variables : { ...variables, ...constants(Object.fromEntries(joined)) };
}

function valuesIn(text: string): [string, unknown][] {
  return Object.entries(JSON.parse(text) as Partial<Constants>);
}
