/** Turns a generated call into the bytes to send. */

/** Values of the names in «» when a call is sent: sessions, requests, a folder. */
export type PlaceholderValues = Readonly<Record<string, string>>;

const DEPTH = 90;

/** Replacements for whole values, as JSON; all are too long for a report. */
const WHOLE: Readonly<Record<string, string>> = {
  mega: JSON.stringify("x".repeat(1_048_576)),
  wide: JSON.stringify("\u{1D11E}".repeat(20_000)),
  manyNames: JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`sessionI${String(n)}`, n]))),
  manyValues: JSON.stringify(Array.from({ length: 100_000 }, (_, n) => n % 7)),
  infinity: "1e400",
  digits: "9".repeat(400),
  deep: `${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}`,
  deeper: `${"[".repeat(3_000)}${"]".repeat(3_000)}`,
  deepObject: `${'{"a":'.repeat(1_500)}1${"}".repeat(1_500)}`,
  proto: '{"then":{},"__proto__":{"isError":false},"constructor":{"prototype":{"x":1}}}',
};
/** Names in `WHOLE` that may also stand for a property name. */
const TEXTS = new Set(["mega", "wide"]);

/** Returns JSON of `value` with every name replaced. Unknown names stay. */
export function spell(value: unknown, place: PlaceholderValues): string {
  return spellText(value === undefined ? "" : JSON.stringify(value), place);
}

export function spellText(text: string, place: PlaceholderValues): string {
  return text
    .replaceAll(/"«(\w+)»"(:?)/g, (all: string, name: string, colon: string) => {
      const whole = Object.hasOwn(WHOLE, name) ? WHOLE[name] : undefined;
      return whole === undefined || (colon !== "" && !TEXTS.has(name)) ? all : `${whole}${colon}`;
    })
    .replaceAll(/«(\w+)»/g, (all: string, name: string) => (Object.hasOwn(place, name) ? (place[name] ?? all) : all));
}
