import { IdReader } from "./id-reader.ts";
import { readMessage, type Fields, type MessageProblem } from "../message.ts";
import { exceededBy, exceededText, MESSAGE_BOUNDS } from "../../security/json-size.ts";

/** Checks a line of stdin before the SDK reads it: https://github.com/modelcontextprotocol/typescript-sdk/pull/2488 */

export interface LineProblem {
  readonly code: number;
  readonly message: string;
  /** JSON spelling for the answer, "null" if unreadable; `undefined` if no answer is expected. */
  readonly id: string | undefined;
}

export interface LineReading {
  /** `undefined` for an invalid or empty line. */
  readonly message?: Fields;
  /** The line for the SDK, rewritten if `message` differs from the input. */
  readonly line?: Buffer;
  readonly problems: readonly LineProblem[];
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/** Whitespace of JSON; `trim` removes more. */
const JSON_SPACE = /^[ \t\r\n]*$/;

export function readLine(line: Buffer): LineReading {
  const bound = exceededBy(line, MESSAGE_BOUNDS);
  if (bound) return refuseLine(exceededText(bound, MESSAGE_BOUNDS), spelledIdIn(line));
  const text = line.toString("utf8");
  // `trim` also removes a byte order mark, which Codex on Windows writes.
  const trimmed = text.trim();
  if (trimmed === "") return { problems: [] };
  let value: unknown;
  try {
    value = JSON.parse(trimmed);
  } catch {
    const message = "Parse error: the line is not JSON. Send one JSON message per line.";
    return { problems: [{ code: PARSE_ERROR, message, id: "null" }] };
  }
  if (Array.isArray(value)) return { problems: problemsOfBatch(value) };
  const { message, problem } = readMessage(value);
  if (problem) return { problems: [{ ...problem, id: spellId(problem.id, line) }] };
  const isAsSent = message === value && text.startsWith(trimmed) && JSON_SPACE.test(text.slice(trimmed.length));
  return { message, line: isAsSent ? line : Buffer.from(`${JSON.stringify(message)}\n`), problems: [] };
}

/** Refuses batches, which MCP has only over HTTP. Answers each request in the batch under its own id. */
function problemsOfBatch(values: readonly unknown[]): LineProblem[] {
  const message = "Invalid request: batches are not supported. Send one message per line.";
  const ids = values.flatMap((value) => idsIn(value));
  return (ids.length > 0 ? ids : ["null"]).map((id) => ({ code: INVALID_REQUEST, message, id }));
}

function idsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null || !("id" in value)) return [];
  return typeof value.id === "string" || typeof value.id === "number" ? [JSON.stringify(value.id)] : [];
}

function spellId(id: MessageProblem["id"], line: Buffer): string | undefined {
  if (id === undefined) return undefined;
  // Spells a number that JavaScript would round as it was sent.
  if (typeof id === "number" && !Number.isSafeInteger(id)) return spelledIdIn(line) ?? "null";
  return JSON.stringify(id);
}

function spelledIdIn(line: Buffer): string | undefined {
  const reader = new IdReader();
  reader.take(line);
  return reader.found;
}

function refuseLine(message: string, id: string | undefined): LineReading {
  return { problems: [{ code: INVALID_REQUEST, message, id }] };
}
