import fc, { type Arbitrary } from "fast-check";

/**
 * Arguments that follow a JSON Schema (`valid`), and arbitrary values (`odd`). Names in «» are replaced when a call is sent
 * (spell.ts), so that the report of a failure fits on a page and names the session.
 */

export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Texts that have broken some program before. */
const ODD_TEXTS = [
  "",
  " ",
  "\0",
  "a\0b",
  "\uD800",
  "x\uDC00",
  "\u202Etxt.exe\u2066",
  "\u001B[2J\u001B]0;title\u0007\u009B31m",
  "\r\nX-Injected: yes\r\n\r\n",
  "\uFEFF",
  "\uFFFF",
  "e\u0301\u0301\u0301",
  "\u{1F9D1}\u200D\u{1F9D1}\u200D\u{1F9D2}",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "toJSON",
  "null",
  "NaN",
  "Infinity",
  "-1",
  "0x10",
  "1e9",
  "../../../../etc/passwd",
  "/proc/self/environ",
  "file:///etc/passwd",
  "\\\\server\\share",
  "C:\\Windows",
  "~root",
  "%00%2e%2e",
  "${PLANTED_API_KEY}",
  "$(touch pwned)",
  "'; DROP TABLE sessions; --",
  "--dangerously-skip-permissions",
  "-p",
  "(a+)+$",
  "*",
  "a".repeat(300),
  "\\".repeat(70),
];

const ODD_VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1,
  0.5,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  "«infinity»",
  "«digits»",
  [],
  {},
  [[]],
  [null],
  { "": "" },
  { toJSON: 1 },
  { length: -1 },
  "«deep»",
  "«proto»",
];

/** Each text costs as much as a hundred others. */
const HUGE_TEXTS = ["«mega»", "«wide»"];
const HUGE_VALUES = [...HUGE_TEXTS, "«manyNames»", "«manyValues»", "«deeper»", "«deepObject»"];

export const oddText: Arbitrary<string> = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...HUGE_TEXTS) },
  { weight: 40, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 12, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 12, arbitrary: fc.string({ maxLength: 100 }) },
);

/** Any JSON value, including edge cases. */
export const odd: Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom(...HUGE_VALUES) },
  { weight: 20, arbitrary: fc.constantFrom(...ODD_VALUES) },
  { weight: 20, arbitrary: oddText },
  { weight: 7, arbitrary: fc.integer() },
  { weight: 7, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 7, arbitrary: fc.jsonValue({ maxDepth: 4, stringUnit: "binary" }) },
);

/** Misspelt names of a schema. */
const nearName = (name: string): Arbitrary<string> =>
  fc.constantFrom(
    name.toUpperCase(),
    `${name} `,
    ` ${name}`,
    `${name}s`,
    name.replaceAll(/[A-Z]/g, "_$&"),
    `${name}\0`,
  );

const word = fc.constantFrom("Read", "Bash(git *)", "opus", "one", "a b", "mcp__x__y");

const NOT_OWN = ["«theirs»", "00000000-0000-4000-8000-000000000000", "nothing"];
const SESSIONS = ["«asking»", "«idle»", "«closed»", ...NOT_OWN];
/**
 * Values of `sessionId` for actions that end a session or its turn: seldom the caller's own, because otherwise none would be
 * left.
 */
const ENDED: Schema = {
  enum: [...Array.from({ length: 12 }, () => ["«closed»", ...NOT_OWN]).flat(), "«asking»", "«idle»"],
};
const ENDING = new Set(["cancel", "close", "delete", "interrupt", "respond_permission", "answer_question"]);

/** Uses `ENDED` as `sessionId`, for a tool that only ends sessions. */
export const ending = (schema: Schema): Schema => ({
  ...schema,
  properties: { ...schema.properties, sessionId: ENDED },
});

/** Usual values by name; otherwise validation would refuse nearly every call. */
const BY_NAME: Readonly<Record<string, Arbitrary<unknown>>> = {
  sessionId: fc.constantFrom(...SESSIONS),
  requestId: fc.constantFrom("«request»", "«theirRequest»", "request-1"),
  cwd: fc.constantFrom("«folder»", "«folder»/..", "«folder»/../..", "/", "/nowhere", "."),
  // Mostly 0, so that the test does not spend its time waiting.
  waitMs: fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 30),
  cursor: fc.nat(40),
  eventId: fc.nat(40),
  offset: fc.nat(3_000),
  limit: fc.nat(300),
  maxEvents: fc.nat(1_001),
  maxBytes: fc.oneof(
    fc.constantFrom(2_048, 4_096, 1_048_576, 2_047, 1_048_577),
    fc.integer({ min: 2_048, max: 9_000 }),
  ),
  since: fc.constantFrom("2020-01-31", "2999-01-31T09:00:00Z", "1970-01-01T00:00:00+24:00", "0", 0),
  status: fc.constantFrom("idle", ["waiting_permission", "cancelled"], ["idle", "idle"], "none"),
  path: fc.constantFrom("«folder»/planted.png", "/etc/passwd", "/dev/zero", "/proc/self/environ", "«folder»"),
  data: fc.constantFrom("iVBORw0KGgo=", "!"),
};

/** Generates a value that follows `schema`; any value for an empty schema. */
export function valid(schema: Schema, name = ""): Arbitrary<unknown> {
  const words = wordsOf(schema);
  if (words.length > 0) return fc.constantFrom(...words);
  const usual = Object.hasOwn(BY_NAME, name) ? BY_NAME[name] : undefined;
  if (usual) return usual;
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms) return fc.oneof(...forms.map((form) => valid(form)));
  switch (schema.type ?? "anything") {
    case "object":
      return validObject(schema);
    case "array":
      return fc.array(valid(schema.items ?? {}), { maxLength: 3 });
    case "integer":
    case "number":
      return validNumber(schema);
    case "string":
      return fc.oneof({ weight: 4, arbitrary: word }, fc.string({ minLength: 1, unit: "grapheme", maxLength: 30 }));
    default:
      return schema.type === "boolean" ? fc.boolean() : odd;
  }
}

function wordsOf({ const: only, enum: some = [] }: Schema): readonly unknown[] {
  return only === undefined ? some : [only];
}

function validNumber({ minimum = 0, maximum = 1_000_000 }: Schema): Arbitrary<number> {
  const [min, max] = [Math.max(minimum, -(2 ** 31)), Math.min(maximum, 2 ** 31 - 1)];
  return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min, max }));
}

/** Fields present in most objects that may have them, because a call without them does little. */
const USUAL = ["sessionId", "waitMs"];
/** Arguments that an action needs. */
const GOES_WITH: Readonly<Record<string, readonly string[]>> = {
  respond_permission: ["requestId", "decision"],
  answer_question: ["requestId", "answers"],
  rename: ["title"],
  set_model: ["model"],
  set_permission_mode: ["permissionMode"],
  stop_task: ["taskId"],
  task_output: ["taskId"],
};

function validObject(schema: Schema): Arbitrary<Record<string, unknown>> {
  const { additionalProperties: rest, properties, required = [] } = schema;
  if (!properties) {
    const each = typeof rest === "object" ? valid(rest) : odd;
    return fc.dictionary(fc.oneof(word, oddText), each, { maxKeys: 3, noNullPrototype: true });
  }
  const names = Object.keys(properties);
  const usual = names.filter((name) => USUAL.includes(name) && !required.includes(name));
  const others = names.filter((name) => !USUAL.includes(name) && !required.includes(name));
  const chosen = fc.tuple(
    fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, fc.subarray(usual)),
    fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.subarray(others, { maxLength: Math.min(4, others.length) })),
    fc.constantFrom(...(properties["action"]?.enum ?? [""])),
  );
  return chosen.chain(([some, more, action]) => {
    const needed = GOES_WITH[String(action)] ?? [];
    const known = ENDING.has(String(action)) ? (ending(schema).properties ?? {}) : properties;
    const present = new Set([...required, ...some, ...more, ...needed].filter((name) => Object.hasOwn(known, name)));
    const fields = [...present].map((name) => [
      name,
      name === "action" ? fc.constant(action) : valid(known[name] ?? {}, name),
    ]);
    return fc.record(Object.fromEntries(fields) as Record<string, Arbitrary<unknown>>, { noNullPrototype: true });
  });
}

/** A change of one part of a value; `place` selects the part. */
interface Change {
  readonly place: number;
  readonly do: "replace" | "remove" | "add" | "wrap" | "rename";
  readonly name: string;
  readonly value: unknown;
}

const change: Arbitrary<Change> = fc.record({
  place: fc.nat(60),
  do: fc.constantFrom("replace", "replace", "replace", "remove", "add", "wrap", "rename"),
  name: fc.oneof(oddText, fc.constantFrom("sessionId", "action", "cwd").chain(nearName)),
  value: odd,
});

/** Applies one to three random changes to each of `values`. */
export function spoilt<T>(values: Arbitrary<T>): Arbitrary<unknown> {
  const changes = fc.array(change, { minLength: 1, maxLength: 3 });
  return fc.tuple(values, changes).map(([value, all]) => all.reduce<unknown>(changed, value));
}

function changed(whole: unknown, what: Change): unknown {
  const places = placesIn(whole);
  const path = places[what.place % places.length] ?? [];
  return changedAt(whole, path, what);
}

function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, each]) => placesIn(each, [...path, key]))];
}

function changedAt(value: unknown, [key, ...deeper]: readonly string[], what: Change): unknown {
  if (key === undefined) return atPlace(value, what);
  const isList = Array.isArray(value);
  const entries = Object.entries(value as object).flatMap(([name, each]): [string, unknown][] => {
    if (name !== key) return [[name, each]];
    if (deeper.length > 0) return [[name, changedAt(each, deeper, what)]];
    if (what.do === "remove") return [];
    return [[what.do === "rename" ? what.name : name, atPlace(each, what)]];
  });
  return isList ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

function atPlace(value: unknown, { do: kind, name, value: other }: Change): unknown {
  if (kind === "rename") return value;
  if (kind === "wrap") return [value];
  if (kind !== "add") return other;
  if (Array.isArray(value)) return [...(value as unknown[]), other];
  return typeof value === "object" ? Object.fromEntries([...Object.entries(value ?? {}), [name, other]]) : other;
}
