import { idIn } from "./guard.ts";
import { exceededBy, exceededText, MESSAGE_BOUNDS } from "../../security/json-size.ts";

/**
 * Checks a line of stdin before the SDK sees it. The SDK drops a line that it cannot parse without an error, so its sender would
 * wait for the answer forever: https://github.com/modelcontextprotocol/typescript-sdk/pull/2488
 */

export interface LineProblem {
  readonly code: number;
  readonly message: string;
  /** Null if the id is unreadable; undefined if no answer is expected. */
  readonly id: string | number | null | undefined;
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const INVALID_PARAMS = -32_602;

/** It comes back with the answer, and is kept until then. */
const MAX_ID = 1_000;

/** Undefined for a message, and for an empty line. */
export function problemIn(line: Buffer): LineProblem | undefined {
  const bound = exceededBy(line, MESSAGE_BOUNDS);
  if (bound) {
    const id = idIn(line.toString("latin1"));
    return { code: INVALID_REQUEST, message: exceededText(bound, MESSAGE_BOUNDS), id };
  }
  const text = line.toString("utf8").trim();
  if (text === "") return undefined;
  try {
    return problemOf(JSON.parse(text));
  } catch {
    return {
      code: PARSE_ERROR,
      message: "Parse error: the line is not JSON. Send one JSON message per line.",
      id: null,
    };
  }
}

function problemOf(message: unknown): LineProblem | undefined {
  if (Array.isArray(message)) return invalid("batches are not supported. Send one message per line.", null);
  if (!isObject(message)) return invalid("it is not a JSON object.", null);
  const { error, id, jsonrpc, method, params, result } = message;
  // An answer to a request of ours: a wrong one needs no reply.
  const isAnswer = method === undefined && (result !== undefined || error !== undefined);
  const answered = isAnswer ? undefined : answerableId(message);
  if ("id" in message && !isId(id)) {
    const problem = `its id is neither a whole number between ±${String(Number.MAX_SAFE_INTEGER)} nor a string of at most ${String(MAX_ID)} characters.`;
    return invalid(problem, answered);
  }
  if (jsonrpc !== "2.0") return invalid('it has no "jsonrpc": "2.0".', answered);
  if (isAnswer) return undefined;
  if (typeof method !== "string") return invalid("its method is not a string.", answered);
  if (params === undefined || isObject(params)) return undefined;
  return { code: INVALID_PARAMS, message: "Invalid params: params must be an object.", id: answered };
}

function answerableId(message: Readonly<Record<string, unknown>>): LineProblem["id"] {
  if (!("id" in message)) return undefined;
  return isId(message["id"]) ? message["id"] : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isId(id: unknown): id is string | number {
  return typeof id === "string" ? id.length <= MAX_ID : Number.isSafeInteger(id);
}

function invalid(problem: string, id: LineProblem["id"]): LineProblem {
  return { code: INVALID_REQUEST, message: `Invalid request: ${problem}`, id };
}
