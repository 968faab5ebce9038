import type { JsonFields } from "./static-file.ts";

/**
 * Reads client messages for static answers. Accepts less than the protocol allows: the daemon gets all messages that could be
 * refused or answered differently.
 */

export interface ClientMessage {
  /** `undefined` for a notification. */
  readonly id: number | string | undefined;
  readonly method: string;
  readonly params: JsonFields;
}

/** Bounds of messages with static answers, characters. */
const MAX_LINE = 16_384;
const MAX_ID = 1_000;

export function readMessage(line: string): ClientMessage | undefined {
  if (line.length > MAX_LINE) return undefined;
  const { id, jsonrpc, method, params = {}, ...others } = fieldsOf(parsed(line)) ?? {};
  const known = fieldsOf(params);
  if (Object.keys(others).length > 0 || jsonrpc !== "2.0" || typeof method !== "string" || !known) return undefined;
  if (id !== undefined && !isId(id)) return undefined;
  return { id, method, params: known };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function isId(id: unknown): id is number | string {
  return typeof id === "string" ? id.length <= MAX_ID : Number.isSafeInteger(id);
}

const PREFIX = "io.modelcontextprotocol/";
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

export const isLogLevel = (level: unknown): boolean => typeof level === "string" && LEVELS.includes(level);

export interface ClientDescription {
  readonly version: string;
  /** `undefined` for a client without a name. */
  readonly name: string | undefined;
  readonly capabilities: unknown;
}

/** Reads parameters of `initialize`. */
export function readInitialize({ _meta, capabilities, clientInfo, protocolVersion, ...others }: JsonFields) {
  const name = nameIn(clientInfo);
  if (typeof protocolVersion !== "string" || name === undefined || Object.keys(others).length > 0) return undefined;
  if (!areCapabilities(capabilities) || !isPlainMeta(_meta)) return undefined;
  return { version: protocolVersion, name, capabilities } satisfies ClientDescription;
}

/** Reads parameters of a request of the `modern` era, in which each request describes its client. */
export function readEnvelope({ _meta, ...others }: JsonFields): ClientDescription | undefined {
  const meta = fieldsOf(_meta);
  const version = meta?.[`${PREFIX}protocolVersion`];
  const info = meta?.[`${PREFIX}clientInfo`];
  const level = meta?.[`${PREFIX}logLevel`];
  if (!meta || typeof version !== "string" || Object.keys(others).length > 0) return undefined;
  const capabilities = meta[`${PREFIX}clientCapabilities`];
  if (!areCapabilities(capabilities) || !isToken(meta)) return undefined;
  if (level !== undefined && !isLogLevel(level)) return undefined;
  const name = nameIn(info);
  return info !== undefined && name === undefined ? undefined : { version, name, capabilities };
}

/** True if `_meta` claims no protocol version and names no task. */
export function isPlainMeta(value: unknown): boolean {
  if (value === undefined) return true;
  const meta = fieldsOf(value);
  return meta !== undefined && isToken(meta) && Object.keys(meta).every((key) => !key.startsWith(PREFIX));
}

function isToken({ progressToken }: JsonFields): boolean {
  return progressToken === undefined || typeof progressToken === "string" || Number.isSafeInteger(progressToken);
}

const TEXT_FIELDS = ["title", "description", "websiteUrl"];

/** Returns the name in `clientInfo`; `undefined` if the description holds more than texts. */
function nameIn(info: unknown): string | undefined {
  const { icons, name, version, ...others } = fieldsOf(info) ?? {};
  if (typeof name !== "string" || typeof version !== "string" || icons !== undefined) return undefined;
  const areTexts = TEXT_FIELDS.every((key) => others[key] === undefined || typeof others[key] === "string");
  return areTexts ? name : undefined;
}

function areCapabilities(value: unknown): boolean {
  const {
    elicitation = {},
    experimental = {},
    extensions = {},
    roots = {},
    sampling = {},
    tasks = {},
  } = { ...fieldsOf(value) };
  const objects = [experimental, extensions, sampling];
  return (
    fieldsOf(value) !== undefined &&
    areForms(elicitation) &&
    isFlagIn(roots, "listChanged") &&
    isNested(tasks) &&
    objects.every(isOfObjects)
  );
}

function areForms(elicitation: unknown): boolean {
  const fields = fieldsOf(elicitation);
  if (!fields) return false;
  const { form = {}, url = {} } = fields;
  return isFlagIn(form, "applyDefaults") && fieldsOf(url) !== undefined;
}

/** True for an object in which field `name` is a boolean or missing. */
function isFlagIn(value: unknown, name: string): boolean {
  const fields = fieldsOf(value);
  return fields !== undefined && ["boolean", "undefined"].includes(typeof fields[name]);
}

function isOfObjects(value: unknown): boolean {
  const fields = fieldsOf(value);
  return fields !== undefined && Object.values(fields).every((each) => fieldsOf(each) !== undefined);
}

function isNested(value: unknown): boolean {
  const fields = fieldsOf(value);
  return fields !== undefined && Object.values(fields).every(isNested);
}

function fieldsOf(value: unknown): JsonFields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
