import { ErrorCode } from "../../../src/domain/refusal.ts";
import { at, type Answer, type Sent } from "./send.ts";

/** Requirements for every answer: form, size, and text that no answer may contain. */

export interface Forbidden {
  /** Forbidden in every answer and every line of the log: tokens, secrets of the environment. */
  readonly ever: readonly string[];
  /** Text of other callers: forbidden in an answer, unless the caller has sent the text. */
  readonly others: readonly string[];
}

const STATUSES = new Set([200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 413, 415]);
/** Codes of JSON-RPC and MCP, except the code for internal errors. */
const RPC_CODES = new Set([-32_700, -32_600, -32_601, -32_602, -32_000, -32_001, -32_002, -32_020, -32_021, -32_022]);
const HEADER_MISMATCH = -32_020;
/** Default limit of a tool's answer, bytes. */
const USUAL_BYTES = 32_768;

/** Internals of the server: stack frames, paths of its source, messages of Node about its code. */
const INSIDES = [
  /(?:\\n|\n)\s*at \S.*:\d+:\d+/,
  /node:internal/,
  // A receipt names the folder alone, as not looked at.
  /node_modules\/[\w@]/,
  /dist\/(?:cli|app|chunk)/,
  /file:\/\/\/.*\.m?[jt]s/,
  /ZodError|SqliteError|SQLITE_|RangeError|SyntaxError|ReferenceError/,
  /Cannot (?:read|set) propert|is not a function|is not iterable|Maximum call stack|undefined is not/,
];

/** Returns the faults of an answer in words; [] if there are none. */
export function faultsOf(sent: Sent, answer: Answer, forbidden: Forbidden): string[] {
  const { status, text } = answer;
  const insides = INSIDES.filter((pattern) => pattern.test(text)).map(
    (pattern) => `shows internals: ${String(pattern)}`,
  );
  const secrets = forbidden.ever.filter((secret) => text.includes(secret)).map(() => "tells a secret");
  const others = forbidden.others
    .filter((each) => text.includes(each) && !sent.body.includes(each))
    .map((each) => `tells what is another's: ${each}`);
  const known = STATUSES.has(status) ? [] : [`has the status ${String(status)}`];
  return [...known, ...insides, ...secrets, ...others, ...formFaults(sent, answer)];
}

function formFaults(sent: Sent, { status, text, type }: Answer): string[] {
  if (text === "") return [];
  if (type.startsWith("text/event-stream")) {
    const data = text.split("\n").filter((line) => line.startsWith("data: ") && line.length > 6);
    return data.flatMap((line) => messageFaults(sent, line.slice(6), status));
  }
  if (type.startsWith("application/json")) return messageFaults(sent, text, status);
  // The request did not reach MCP.
  return status === 404 || status === 405 ? [] : [`is of the type ${type}`];
}

function messageFaults(sent: Sent, text: string, status: number): string[] {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return ["is not JSON"];
  }
  return [message].flat().flatMap((each) => oneFaults(sent, each, status));
}

function oneFaults(sent: Sent, message: unknown, status: number): string[] {
  const error = at(message, "error");
  if (at(message, "jsonrpc") !== "2.0") {
    const isRefusal = status >= 400 && typeof error === "string" && typeof at(message, "message") === "string";
    return isRefusal ? [] : ["is not a message of JSON-RPC"];
  }
  if (typeof at(message, "method") === "string") return [];
  if (error !== undefined) return errorFaults(error);
  const result = at(message, "result");
  if (typeof result !== "object" || result === null) return ["has no result and no error"];
  return Array.isArray(at(result, "content")) ? toolFaults(sent, result) : [];
}

function errorFaults(error: unknown): string[] {
  const [code, message] = [at(error, "code"), at(error, "message")];
  const known = (typeof code === "number" && RPC_CODES.has(code)) || isShapeFault(code, message);
  const bytes = Buffer.byteLength(JSON.stringify(error));
  return [
    ...(known ? [] : [`has the error ${String(code)}`]),
    ...(typeof message === "string" && message !== "" ? [] : ["has an error without a message"]),
    // The SDK repeats the expected header at any length.
    ...(bytes > USUAL_BYTES && code !== HEADER_MISMATCH ? [`has an error of ${size(bytes)}`] : []),
  ];
}

/** True for the SDK's error for params of the wrong shape: this code, with a list of issues as text. */
function isShapeFault(code: unknown, message: unknown): boolean {
  return code === -32_603 && typeof message === "string" && /^\[\s*\{\s*"(?:expected|code|origin)"/.test(message);
}

function toolFaults(sent: Sent, result: object): string[] {
  const content: unknown = at(at(result, "content"), "0");
  const [text, structured] = [at(content, "text"), at(result, "structuredContent")];
  if (typeof text !== "string") return ["has no text"];
  const data = JSON.stringify(structured) as string | undefined;
  if (data === undefined) return ["has no structuredContent"];
  const isError = at(result, "isError") === true;
  const bytes = Math.max(Buffer.byteLength(text), Buffer.byteLength(data));
  const most = isError ? USUAL_BYTES : bytesAllowed(sent);
  return [
    ...(bytes > most ? [`has ${size(bytes)}, of ${String(most)} allowed`] : []),
    ...(isError ? typedFaults(text, structured) : []),
  ];
}

function typedFaults(text: string, structured: unknown): string[] {
  const [, code] = /^Error \[([A-Z_]+)\]: \S/.exec(text) ?? [];
  if (!ErrorCode.safeParse(code).success) return [`has an error without a known code: ${text.slice(0, 80)}`];
  const same = at(structured, "code") === code && at(structured, "error") === text;
  return [
    ...(same ? [] : ["says something else in structuredContent than in its text"]),
    ...(code === "INTERNAL" ? [`is a fault of the server: ${text.slice(0, 200)}`] : []),
  ];
}

function bytesAllowed({ json }: Sent): number {
  const args = at(at(json, "params"), "arguments");
  const asked = at(args, "maxBytes") ?? at(at(args, "pollOptions"), "maxBytes");
  return typeof asked === "number" ? asked : USUAL_BYTES;
}

/** Rounded, so that equal faults have equal texts. */
const size = (bytes: number): string => (bytes > 1_000_000 ? "over a megabyte" : "over 32 KiB");
