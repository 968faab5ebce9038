import { exceededBy, MESSAGE_BOUNDS } from "../security/json-size.ts";

/**
 * Validates a message of a client against JSON-RPC and MCP before the SDK reads it: the SDK drops invalid messages without an
 * answer, and the sender would wait forever. Normalizes deviations with only one possible meaning. Refuses the rest under the
 * id of the request, naming the field.
 */

export type Fields = Readonly<Record<string, unknown>>;

export interface MessageProblem {
  readonly code: number;
  readonly message: string;
  /** `null` if the id is unreadable; `undefined` if no answer is expected. */
  readonly id: string | number | null | undefined;
}

/** `message` is the parsed value itself if nothing was changed. */
export type MessageReading =
  | { readonly message: Fields; readonly problem?: undefined }
  | { readonly message?: undefined; readonly problem: MessageProblem };

const INVALID_REQUEST = -32_600;
const INVALID_PARAMS = -32_602;

/** Maximum length of an id, characters. Ids are kept until they are repeated in the answer. */
const MAX_ID = 1_000;

const WHOLE_NUMBER = `a whole number between ±${String(Number.MAX_SAFE_INTEGER)}`;
const BAD_ID = `id: must be ${WHOLE_NUMBER}, or a string of at most ${String(MAX_ID)} characters.`;

export function readMessage(value: unknown): MessageReading {
  if (Array.isArray(value)) return invalidRequest("this message is a batch. Send each message alone.", null);
  if (!isObject(value)) return invalidRequest("the message must be a JSON object.", null);
  const { id, method } = value;
  if (isAnswer(value)) return readAnswer(value);
  const isNotification = !("id" in value) || (id === null && isNotificationMethod(method));
  const answered = isNotification ? undefined : answerableId(id);
  const problem = problemInRequest(value, isNotification);
  if (problem !== undefined) return invalidRequest(problem, answered);
  const params = value["params"] === null ? undefined : normalizeField("params", value["params"]);
  const wrong = problemInParams(params);
  if (wrong !== undefined) {
    return { problem: { code: INVALID_PARAMS, message: `Invalid params: ${wrong}`, id: answered } };
  }
  const given = { ...(!isNotification && { id }), ...(params !== undefined && { params }) };
  return { message: keepIfEqual(value, { jsonrpc: "2.0", method, ...given }) };
}

/** Treats `null` as absent, because clients without optional fields send `null`. */
function isAnswer({ error = null, method = null, result = null }: Fields): boolean {
  return method === null && (result !== null || error !== null);
}

function problemInRequest(value: Fields, isNotification: boolean): string | undefined {
  const { error = null, id, jsonrpc, method, result = null } = value;
  if (!isNotification && !isValidId(id)) return BAD_ID;
  if (jsonrpc !== "2.0") return 'jsonrpc: must be "2.0".';
  if (typeof method !== "string") return "method: must be a string.";
  if (result !== null || error !== null) return "result, error: not allowed in a request.";
  return isNotification || !isNotificationMethod(method)
    ? undefined
    : `id: not allowed in a notification (${method}). Leave it out.`;
}

/**
 * Validates an answer to a request of this server. Turns an invalid answer into an error, because the waiting request must fail
 * and a client expects no reply.
 */
function readAnswer(value: Fields): MessageReading {
  const { error = null, id, jsonrpc, result = null } = value;
  if (!isValidId(id)) return invalidRequest(BAD_ID, undefined);
  const wrong = (problem: string): MessageReading => {
    const message = `Invalid answer: ${problem}`;
    return { message: { jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } } };
  };
  if (jsonrpc !== "2.0") return wrong('jsonrpc: must be "2.0".');
  if (error !== null) {
    const isError = hasStrings(error, ["message"]) && Number.isSafeInteger(error["code"]);
    return isError
      ? { message: keepIfEqual(value, { jsonrpc, id, error }) }
      : wrong("error: must have a code and a message.");
  }
  if (!isObject(result)) return wrong("result: must be an object.");
  const given = Object.entries(result).filter(([, each]) => each !== null);
  const isSame = given.length === Object.keys(result).length;
  return { message: keepIfEqual(value, { jsonrpc, id, result: isSame ? result : Object.fromEntries(given) }) };
}

const PREFIX = "io.modelcontextprotocol/";
const LEVELS: readonly unknown[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** Returns a problem with `_meta` or the type of `params`; parameters of a method are checked by its schema. */
function problemInParams(params: unknown): string | undefined {
  if (params === undefined) return undefined;
  if (!isObject(params)) return "params: must be an object.";
  const { _meta: meta } = params;
  if (meta === undefined) return undefined;
  if (!isObject(meta)) return "params._meta: must be an object.";
  const { progressToken: token } = meta;
  if (token !== undefined && typeof token !== "string" && !Number.isSafeInteger(token)) {
    return `params._meta.progressToken: must be a string, or ${WHOLE_NUMBER}.`;
  }
  const task = meta[`${PREFIX}related-task`];
  if (task !== undefined && !hasStrings(task, ["taskId"]))
    return metaProblem("related-task", "an object with a taskId");
  return problemInEnvelope(meta);
}

/**
 * First protocol version whose requests describe their client in `_meta`; requests of earlier versions may carry some of these
 * fields.
 */
const FIRST_MODERN_VERSION = "2026";

/** Returns a problem with the client's description in `_meta`. The SDK would refuse the request without naming the field. */
function problemInEnvelope(meta: Fields): string | undefined {
  const version = meta[`${PREFIX}protocolVersion`];
  if (version === undefined) return undefined;
  if (typeof version !== "string") return metaProblem("protocolVersion", "a string");
  if (version < FIRST_MODERN_VERSION) return undefined;
  const info = meta[`${PREFIX}clientInfo`];
  if (info !== undefined && !hasStrings(info, ["name", "version"])) {
    return metaProblem("clientInfo", "an object with a name and a version");
  }
  if (!isObject(meta[`${PREFIX}clientCapabilities`]))
    return metaProblem("clientCapabilities", "an object; {} for none");
  const level = meta[`${PREFIX}logLevel`];
  return level === undefined || LEVELS.includes(level)
    ? undefined
    : metaProblem("logLevel", `one of ${LEVELS.join(", ")}`);
}

function metaProblem(key: string, kind: string): string {
  return `params._meta["${PREFIX}${key}"]: must be ${kind}.`;
}

function hasStrings(value: unknown, keys: readonly string[]): value is Fields {
  return isObject(value) && keys.every((key) => typeof value[key] === "string");
}

/** Fields whose content belongs to the client: `null` inside is a value. */
const CLIENT_FIELDS = new Set(["arguments", "inputResponses"]);
/** Fields for which some programs send an empty list in place of an empty object. */
const OBJECT_FIELDS = new Set(["_meta", "arguments", "capabilities", "params"]);
/** Required fields that may be empty: `null` means {}. */
const CAPABILITY_FIELDS = new Set(["capabilities", `${PREFIX}clientCapabilities`]);

/** Fields in which `null` is a value: a lifetime without end. */
const NULL_FIELDS = new Set(["ttlMs"]);

/** Removes `null` fields, which mean absent fields. Returns `value` itself if there are none. */
function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value;
  const all = Object.entries(value).map(
    ([key, each]) => [key, each ?? (CAPABILITY_FIELDS.has(key) ? {} : null)] as const,
  );
  const kept = all.flatMap(([key, each]) =>
    each === null && !NULL_FIELDS.has(key) ? [] : [[key, normalizeField(key, each)] as const],
  );
  const isSame = kept.length === all.length && kept.every(([key, each]) => each === value[key]);
  return isSame ? value : Object.fromEntries(kept);
}

function normalizeField(key: string, value: unknown): unknown {
  if (OBJECT_FIELDS.has(key) && Array.isArray(value) && value.length === 0) return {};
  if (key === "arguments") return parseIfJsonObject(value);
  return CLIENT_FIELDS.has(key) ? value : withoutNulls(value);
}

/** Parses `arguments` sent as a string: some models write all arguments of a call as one text. */
function parseIfJsonObject(value: unknown): unknown {
  if (typeof value !== "string" || exceededBy(Buffer.from(value), MESSAGE_BOUNDS)) return value;
  try {
    const read: unknown = JSON.parse(value);
    return isObject(read) ? read : value;
  } catch {
    return value;
  }
}

/** Returns `value` itself if its fields equal `fields`. */
function keepIfEqual(value: Fields, fields: Fields): Fields {
  const keys = Object.keys(value);
  const isSame = keys.length === Object.keys(fields).length && keys.every((key) => value[key] === fields[key]);
  return isSame ? value : fields;
}

function isNotificationMethod(method: unknown): boolean {
  return typeof method === "string" && method.startsWith("notifications/");
}

/** Returns an invalid id too, so that the sender can find its request. */
function answerableId(id: unknown): string | number | null {
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isValidId(id: unknown): boolean {
  return typeof id === "string" ? id.length <= MAX_ID : Number.isSafeInteger(id);
}

function invalidRequest(problem: string, id: MessageProblem["id"]): MessageReading {
  return { problem: { code: INVALID_REQUEST, message: `Invalid request: ${problem}`, id } };
}
