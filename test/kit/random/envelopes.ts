import fc, { type Arbitrary } from "fast-check";

/**
 * Requests with unique ids and random changes to the envelope: fields missing, extra or of another type, ids and spaces in any
 * spelling. RANDOM_SEED=n repeats the requests of a run.
 */

export type Era = "legacy" | "modern";

export interface Envelope {
  /** Line of JSON. */
  readonly text: string;
  /** Id as `JSON.parse` returns it. */
  readonly id: string | number;
}

export const ENVELOPE_SEED = Number(process.env["RANDOM_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));

const PREFIX = "io.modelcontextprotocol/";

/** Fields by which a client of the 2026 era identifies itself in each request. */
export const OF_MODERN = {
  [`${PREFIX}protocolVersion`]: "2026-07-28",
  [`${PREFIX}clientInfo`]: { name: "t", version: "1" },
  [`${PREFIX}clientCapabilities`]: {},
};

const call = (args: unknown) => ({ name: "claude_code_session", arguments: args });

/** Requests of which none starts a session, waits, or ends a request. */
const REQUESTS: readonly (readonly [string, object?])[] = [
  ["ping"],
  ["tools/list"],
  ["tools/list", {}],
  ["tools/call", call({ action: "list" })],
  ["tools/call", call({ action: "get", sessionId: "none" })],
  ["resources/list"],
  ["resources/templates/list"],
  ["resources/read", { uri: "claude-code://quickstart" }],
  ["resources/subscribe", { uri: "claude-code://quickstart" }],
  ["prompts/list"],
  ["prompts/get", { name: "delegate", arguments: { task: "x" } }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "delegate" }, argument: { name: "cwd", value: "/" } }],
  ["logging/setLevel", { level: "emergency" }],
  ["server/discover"],
  ["initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }],
  ["tasks/get", { taskId: "none" }],
  ["notifications/initialized"],
  ["notifications/cancelled", { requestId: "none" }],
  ["no/such/method", { x: 1 }],
];

const META_KEYS = ["protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "related-task"];
const PARAMS = [
  "cursor",
  "name",
  "arguments",
  "uri",
  "level",
  "ref",
  "argument",
  "task",
  "inputResponses",
  "requestState",
];
const OF_INITIALIZE = ["protocolVersion", "capabilities", "clientInfo"];

/** Paths of fields that are changed. */
const PATHS: readonly (readonly string[])[] = [
  ...["jsonrpc", "method", "params", "result", "error", "x", "__proto__", "constructor"].map((key) => [key]),
  ...[...PARAMS, ...OF_INITIALIZE, "_meta", "__proto__"].map((key) => ["params", key]),
  ...["progressToken", "traceparent", "x", ...META_KEYS.map((key) => PREFIX + key)].map((key) => [
    "params",
    "_meta",
    key,
  ]),
];

const VALUES: readonly unknown[] = [
  null,
  true,
  "",
  "x",
  "\uD800",
  "tools/list",
  "2.0",
  0,
  -1,
  1.5,
  2 ** 60,
  [],
  {},
  [1],
];

const value = fc.oneof(fc.constantFrom(...VALUES), fc.jsonValue({ maxDepth: 2 }));

type Change = readonly [path: readonly string[], value: unknown];
/** Value `undefined` removes the field. */
const change: Arbitrary<Change> = fc.tuple(
  fc.constantFrom(...PATHS),
  fc.oneof({ arbitrary: value, weight: 3 }, fc.constant(undefined)),
);

/** Spellings of a unique id for each number; refused ids are answered too. */
const IDS: readonly ((n: number) => string)[] = [
  (n) => String(n),
  (n) => `-${String(n)}`,
  (n) => `${String(n)}.50`,
  (n) => `${String(n)}e40`,
  (n) => `"${String(n)}"`,
  (n) => String.raw`"\ud800${String(n)}"`,
  (n) => `"${"y".repeat(1_200)}${String(n)}"`,
];

const SPACES = ["", " ", "\t", "\uFEFF", "\u00A0", "\u2028"];
const DEEP = `${"[".repeat(1_500)}${"]".repeat(1_500)}`;
const MANY = `[${"0,".repeat(12_000)}0]`;

/** Everything in an envelope except the number in its id. */
const unnumbered = (era: Era) =>
  fc.record({
    request: fc.constantFrom(...REQUESTS),
    changes: fc.array(change, { maxLength: 3 }),
    order: fc.array(fc.nat(20), { minLength: 8, maxLength: 8 }),
    id: fc.constantFrom(...IDS),
    spaces: fc.tuple(fc.constantFrom(...SPACES), fc.constantFrom(...SPACES)),
    more: fc.oneof({ arbitrary: fc.constant(undefined), weight: 60 }, fc.constantFrom(DEEP, MANY)),
    era: fc.constant(era),
  });

type Unnumbered = ReturnType<typeof unnumbered> extends Arbitrary<infer T> ? T : never;

/** Generates `count` envelopes, equal for an equal `seed`. */
export function envelopes(era: Era, count: number, seed = ENVELOPE_SEED): Envelope[] {
  return fc.sample(unnumbered(era), { seed, numRuns: count }).map((made, at) => spelled(made, at + 1));
}

function spelled({ changes, era, id, more, order, request, spaces }: Unnumbered, n: number): Envelope {
  const [method, given] = request;
  const params = era === "modern" ? { ...given, _meta: OF_MODERN } : given;
  const fields = JSON.parse(JSON.stringify({ jsonrpc: "2.0", method, params })) as Record<string, unknown>;
  // A copy, because the next change may modify the value.
  for (const [path, changed] of changes) put(fields, path, structuredClone(changed));
  // Without a method, `result` or `error` would make the message a response, which gets no answer.
  if ((fields["method"] ?? null) === null) for (const key of ["result", "error"]) delete fields[key];
  const members = Object.entries(fields).map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`);
  const all = [...members, `"id":${id(n)}`, ...(more === undefined ? [] : [`"more":${more}`])];
  const text = all.map((member, at) => ({ member, key: order[at] ?? 0 })).toSorted((a, b) => a.key - b.key);
  const [before, after] = spaces;
  return {
    text: `${before}{${text.map(({ member }) => member).join(", ")}}${after}`,
    id: JSON.parse(id(n)) as string | number,
  };
}

function put(fields: Record<string, unknown>, path: readonly string[], changed: unknown): void {
  const [key = "", ...rest] = path;
  if (rest.length > 0) {
    const inner = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (typeof inner === "object" && inner !== null) put(inner as Record<string, unknown>, rest, changed);
    return;
  }
  if (changed === undefined) delete fields[key];
  else Object.defineProperty(fields, key, { value: changed, enumerable: true, configurable: true, writable: true });
}
