import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import type { EventType, SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { finishedLength, isWord } from "./unfinished.ts";

/**
 * Takes secrets out of what leaves the process as text: the values of environment variables that are named like a
 * secret, and whatever looks like a credential by itself.
 */
export interface Masker {
  text(text: string): string;
  /** Of a text that is still being written: what may be the beginning of a secret is left out until it has come to its end. */
  unfinished(text: string): string;
  /** A copy, masked in every string at any depth, names of fields included. */
  fields(fields: JsonObject): JsonObject;
  /**
   * An event as it may be stored: what Claude Code, its tools and its processes have said is masked. What goes to it, or
   * goes back to it from the log, is not: prompts, what is asked and with which input, and why something was denied.
   */
  event(event: SessionEvent): SessionEvent;
}

const MASKED = "[masked]";

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|AUTH(?!OR_)/i;

/** A shorter value would be found, and masked, in ordinary words. */
const MIN_LENGTH = 8;

/** Objects within objects: more would be more than the call stack holds. */
const MAX_DEPTH = 200;

/**
 * Every message goes through this one: it must take time in proportion to the text, whatever the text. What stands
 * before a credential and is kept is therefore a group and no lookbehind, which would be tried at each character.
 */
const CREDENTIALS = new RegExp(
  [
    // A private key that was cut off has no end: all that follows is masked.
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/,
    /sk-ant-[\w-]{4,}/,
    /(\bBearer\s+)[\w.~+/-]{4,}=*/,
    // Of this server over HTTP.
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

/** `env` is read once, here. */
export function createMasker(env: Readonly<Record<string, string | undefined>>): Masker {
  const secrets = knownOf(secretValues(env));
  return maskerOf(() => secrets);
}

/** A masker whose secrets may change: it asks for them at each text. */
export function maskerOf(secrets: () => KnownSecrets): Masker {
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
  // Masks all strings of an event whose type is unknown here.
  return decideBy(EVENT_MASKS, event, masks) ?? { ...event, ...masks.fields({ data: event.data }) };
}

/** Keeps what goes to Claude Code or comes from this server. */
const kept =
  <T extends EventType>(type: T) =>
  (data: DataOf<T>) => ({ type, data });

/** Stored form of each event type: see `Masker.event`. */
const EVENT_MASKS: ByEventType<SessionEvent, [Masks]> = {
  "session.opened": kept("session.opened"),
  "session.configured": kept("session.configured"),
  "session.closed": kept("session.closed"),
  "prompt.queued": kept("prompt.queued"),
  "prompt.steered": kept("prompt.steered"),
  "prompt.dropped": kept("prompt.dropped"),
  "turn.started": kept("turn.started"),
  "turn.ended": (data, { text }) => {
    const message = data.message === undefined ? {} : { message: text(data.message) };
    const warnings = data.warnings && { warnings: data.warnings.map(text) };
    return { type: "turn.ended", data: { ...data, ...message, ...warnings } };
  },
  message: ({ message }, { fields }) => ({ type: "message", data: { message: fields(message) } }),
  "permission.asked": kept("permission.asked"),
  "permission.answered": (data, masks) => ({ type: "permission.answered", data: maskAnswer(data, masks) }),
  "question.asked": kept("question.asked"),
  "question.answered": (data, masks) => ({ type: "question.answered", data: maskAnswer(data, masks) }),
  "request.passed": kept("request.passed"),
  "background.changed": ({ tasks }, { text }) => {
    const masked = tasks.map((task) => ({ ...task, description: text(task.description) }));
    return { type: "background.changed", data: { tasks: masked } };
  },
  notice: (data, { fields, text }) => {
    const details = data.details && { details: fields(data.details) };
    return { type: "notice", data: { ...data, message: text(data.message), ...details } };
  },
  "process.started": kept("process.started"),
  "process.exited": (data, { text }) => {
    const error = data.error === undefined ? {} : { error: text(data.error) };
    return { type: "process.exited", data: { ...data, ...error } };
  },
};

function maskAnswer(data: DataOf<"permission.answered">, { fields }: Masks): DataOf<"permission.answered"> {
  return data.updatedInput ? { ...data, updatedInput: fields(data.updatedInput) } : data;
}

/** What is secret of these variables, each as it is and as it stands inside a JSON text. */
export function secretValues(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const secret = value?.trim() ?? "";
    if (!SECRET_NAME.test(name) || secret.length < MIN_LENGTH) return [];
    return [secret, JSON.stringify(secret).slice(1, -1)];
  });
}

/** `pattern` finds each of them; undefined where there is none. `phrases` are those that are more than a word. */
export interface KnownSecrets {
  readonly pattern: RegExp | undefined;
  readonly phrases: readonly string[];
}

export function knownOf(found: Iterable<string>): KnownSecrets {
  // The longest first: one secret may begin with another.
  const values = [...new Set(found)].toSorted((a, b) => b.length - a.length);
  if (values.length === 0) return { pattern: undefined, phrases: [] };
  const sources = values.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return { pattern: new RegExp(sources.join("|"), "g"), phrases: values.filter((value) => !isWord(value)) };
}

type MaskText = (text: string) => string;

/** `above` are the objects this one stands in: a value that holds itself is cut there. */
function maskEntries(value: object, text: MaskText, above: readonly object[]): JsonObject {
  const inside = [...above, value];
  const masked = new Map<string, unknown>();
  for (const [key, each] of Object.entries(value))
    masked.set(freeName(text(key), masked), maskValue(each, text, inside));
  return Object.fromEntries(masked);
}

/** Two secrets have one mask: none of the values is lost for that. */
function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
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
    // What an error says of itself is not enumerable; fields of its class are.
    const { name, message, stack, cause } = value;
    const fields = { ...Object.fromEntries(Object.entries(value)), name, message, stack, cause };
    return maskEntries(fields, text, [...above, value]);
  }
  return maskEntries(value, text, above);
}

/** A private key that stands in a list line by line, as in a patch, is no key in any of them. */
function maskList(list: readonly unknown[], text: MaskText, above: readonly object[]): unknown[] {
  let inKey = false;
  return list.map((each) => {
    if (typeof each !== "string") return maskValue(each, text, above);
    const began = inKey;
    // Asked first because patches are long and keys are rare.
    const border = each.includes("PRIVATE KEY-----") ? [...each.matchAll(KEY_BORDER)].at(-1)?.[1] : undefined;
    if (border !== undefined) inKey = border === "BEGIN";
    return began ? MASKED : text(each);
  });
}
