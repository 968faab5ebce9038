import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import { MASKED, type EventType, type SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { finishedLength, isWord } from "./unfinished-secrets.ts";

/**
 * Removes secrets from text that leaves the process: values of environment variables with a secret's name (`SECRET_NAME`), and
 * text in the form of a credential (`CREDENTIALS`).
 */
export interface Masker {
  text(text: string): string;
  /**
   * Masks a text that is still growing. Leaves out a tail that may be the beginning of a secret, until the rest has arrived.
   */
  unfinished(text: string): string;
  /** Returns a copy, masked in every string at any depth, field names included. */
  fields(fields: JsonObject): JsonObject;
  /**
   * Returns `event` as it may be stored. Masks output of Claude Code, its tools and its processes. Keeps everything that goes
   * to Claude Code, or returns there from the log: prompts, requests with their inputs, and reasons for denials.
   */
  event(event: SessionEvent): SessionEvent;
}

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|AUTH(?!OR_)/i;

/** Shorter values would also match, and mask, ordinary words. */
const MIN_LENGTH = 8;

/** Maximum nesting of objects; more could overflow the call stack. */
const MAX_DEPTH = 200;

/**
 * Runs on every message, so its time must be linear in the length of any text. Text before a credential is therefore kept by a
 * capture group: a lookbehind would be tried at each character.
 */
const CREDENTIALS = new RegExp(
  [
    // A private key without its end marker, because a text may be cut off: everything after the begin marker is masked.
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/,
    /sk-ant-[\w-]{4,}/,
    /(\bBearer\s+)[\w.~+/-]{4,}=*/,
    // Tokens of this server for HTTP, see `newToken`.
    /\bccm_[\w-]{20,}/,
    /\bgh[pousr]_\w{20,}/,
    /\bAKIA[A-Z0-9]{16}\b/,
    /\bxox[a-z]-[\w-]{10,}/,
    // User and password in a URL, for instance of a proxy.
    /(:\/\/)[^\s/@:"]+:[^\s/@"]+(?=@)/,
  ]
    .map((pattern) => pattern.source)
    .join("|"),
  "gi",
);
const CREDENTIAL_MASKED = `$1$2${MASKED}`;

const KEY_BORDER = /-----(BEGIN|END) [A-Z ]*PRIVATE KEY-----/g;

/** Reads `env` once. */
export function createMasker(env: Readonly<Record<string, string | undefined>>): Masker {
  const secrets = compileSecrets(secretValues(env));
  return createDynamicMasker(() => secrets);
}

/** Creates a masker with changing secrets: calls `secrets` for each text. */
export function createDynamicMasker(secrets: () => KnownSecrets): Masker {
  const text = (value: string): string => {
    const { pattern } = secrets();
    const known = pattern === undefined ? value : value.replaceAll(pattern, MASKED);
    return known.replaceAll(CREDENTIALS, CREDENTIAL_MASKED);
  };
  const fields = (value: JsonObject): JsonObject => maskEntries(value, text, []);
  const unfinished = (value: string): string => text(value.slice(0, finishedLength(value, secrets().phrases)));
  return { text, unfinished, fields, event: (event) => maskEvent(event, { text, fields }) };
}

type Masks = Pick<Masker, "fields" | "text">;

function maskEvent(event: SessionEvent, masks: Masks): SessionEvent {
  // Masks all strings of an event with an unknown type.
  return decideBy(EVENT_MASKS, event, masks) ?? { ...event, ...masks.fields({ data: event.data }) };
}

/** Keeps data that goes to Claude Code or comes from this server. */
const keepData =
  <T extends EventType>(type: T) =>
  (data: DataOf<T>) => ({ type, data });

/** Stored form of each event type: see `Masker.event`. */
const EVENT_MASKS: ByEventType<SessionEvent, [Masks]> = {
  "session.opened": keepData("session.opened"),
  "session.configured": keepData("session.configured"),
  "session.closed": keepData("session.closed"),
  "prompt.queued": keepData("prompt.queued"),
  "prompt.steered": keepData("prompt.steered"),
  "prompt.dropped": keepData("prompt.dropped"),
  "turn.started": keepData("turn.started"),
  "turn.baseline": keepData("turn.baseline"),
  "verification.started": keepData("verification.started"),
  "verification.ended": (data, masks) => ({ type: "verification.ended", data: maskVerification(data, masks) }),
  "turn.receipt": ({ receipt, ...data }, { text }) => {
    const commands = receipt.commands.map((run) => ({ ...run, command: text(run.command) }));
    const commits = receipt.commits.map((commit) => ({ ...commit, subject: text(commit.subject) }));
    return { type: "turn.receipt", data: { ...data, receipt: { ...receipt, commands, commits } } };
  },
  "turn.ended": (data, { text }) => {
    const message = data.message === undefined ? {} : { message: text(data.message) };
    const warnings = data.warnings && { warnings: data.warnings.map(text) };
    return { type: "turn.ended", data: { ...data, ...message, ...warnings } };
  },
  message: ({ message }, { fields }) => ({ type: "message", data: { message: fields(message) } }),
  "permission.asked": keepData("permission.asked"),
  "permission.answered": (data, masks) => ({ type: "permission.answered", data: maskAnswer(data, masks) }),
  "question.asked": keepData("question.asked"),
  "question.answered": (data, masks) => ({ type: "question.answered", data: maskAnswer(data, masks) }),
  "request.passed": keepData("request.passed"),
  "background.changed": ({ tasks }, { text }) => {
    const masked = tasks.map((task) => ({ ...task, description: text(task.description) }));
    return { type: "background.changed", data: { tasks: masked } };
  },
  notice: (data, { fields, text }) => {
    const details = data.details && { details: fields(data.details) };
    return { type: "notice", data: { ...data, message: text(data.message), ...details } };
  },
  "process.started": keepData("process.started"),
  "process.exited": (data, { text }) => {
    const error = data.error === undefined ? {} : { error: text(data.error) };
    return { type: "process.exited", data: { ...data, ...error } };
  },
};

function maskVerification(data: DataOf<"verification.ended">, { text }: Masks): DataOf<"verification.ended"> {
  const { verification } = data;
  const commands = verification.commands.map((run) => ({ ...run, tail: text(run.tail) }));
  return { ...data, verification: { ...verification, commands } };
}

function maskAnswer(data: DataOf<"permission.answered">, { fields }: Masks): DataOf<"permission.answered"> {
  return data.updatedInput ? { ...data, updatedInput: fields(data.updatedInput) } : data;
}

/** Returns the secret values of `env`, each literally and as escaped in JSON text. */
export function secretValues(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const secret = value?.trim() ?? "";
    if (!SECRET_NAME.test(name) || secret.length < MIN_LENGTH) return [];
    return [secret, JSON.stringify(secret).slice(1, -1)];
  });
}

/** `pattern` matches all secrets, `undefined` if there are none. `phrases` are the secrets of more than one word. */
export interface KnownSecrets {
  readonly pattern: RegExp | undefined;
  readonly phrases: readonly string[];
}

export function compileSecrets(found: Iterable<string>): KnownSecrets {
  // Longest first, because one secret may begin with another.
  const values = [...new Set(found)].toSorted((a, b) => b.length - a.length);
  if (values.length === 0) return { pattern: undefined, phrases: [] };
  const sources = values.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { pattern: new RegExp(sources.join("|"), "g"), phrases: values.filter((value) => !isWord(value)) };
}

type MaskText = (text: string) => string;

/** `above` are the objects that contain `value`: a circular reference is cut. */
function maskEntries(value: object, text: MaskText, above: readonly object[]): JsonObject {
  const inside = [...above, value];
  const masked = new Map<string, unknown>();
  for (const [key, each] of Object.entries(value))
    masked.set(unusedName(text(key), masked), maskValue(each, text, inside));
  return Object.fromEntries(masked);
}

/** Adds a number to a masked field name that is taken, because two secrets have the same mask and no value may be lost. */
function unusedName(name: string, taken: ReadonlyMap<string, unknown>): string {
  let free = name;
  for (let count = 2; taken.has(free); count += 1) free = `${name} ${String(count)}`;
  return free;
}

function maskValue(value: unknown, text: MaskText, above: readonly object[]): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (above.includes(value)) return "[circular]";
  if (above.length >= MAX_DEPTH) return "[nested too deeply]";
  if (Array.isArray(value)) return maskList(value, text, [...above, value]);
  if (value instanceof Error) {
    // `message`, `stack` and `cause` of an error are not enumerable; fields of its class are.
    const { name, message, stack, cause } = value;
    const fields = { ...Object.fromEntries(Object.entries(value)), name, message, stack, cause };
    return maskEntries(fields, text, [...above, value]);
  }
  return maskEntries(value, text, above);
}

/** Masks a private key that a list holds line by line, as in a patch: no single line looks like a key. */
function maskList(list: readonly unknown[], text: MaskText, above: readonly object[]): unknown[] {
  let inKey = false;
  return list.map((each) => {
    if (typeof each !== "string") return maskValue(each, text, above);
    const began = inKey;
    // Checked with `includes` first, because patches are long and keys are rare.
    const border = each.includes("PRIVATE KEY-----") ? [...each.matchAll(KEY_BORDER)].at(-1)?.[1] : undefined;
    if (border !== undefined) inKey = border === "BEGIN";
    return began ? MASKED : text(each);
  });
}
