import { readMessage, type Fields, type MessageProblem } from "./message.ts";
import { duplicateIdText } from "./unanswered-requests.ts";

/** Validates the messages of an HTTP request for the SDK: one message, or a batch from a client of the 2025 era. */

/** Body of a request, or the refusal with an answer to each request in the body. */
type BodyReading = { readonly body: unknown; readonly refusal?: undefined } | { readonly refusal: Response };

const INVALID_REQUEST = -32_600;
const OTHER_INVALID = "Invalid request: another message of this batch is invalid.";

/** Returns the validated body, or the refusal. `value` is the parsed body; `undefined` if the request has none. */
export function readBody(value: unknown): BodyReading {
  if (value === undefined) return { body: undefined };
  if (Array.isArray(value) && value.length > 0) return readBatch(value);
  const { message, problem } = readMessage(value);
  return problem ? { refusal: refuse(problemAnswer(problem)) } : { body: message };
}

/**
 * Accepts a batch as a whole or not at all, because the SDK ends the response after the first of two requests with the same id.
 */
function readBatch(values: readonly unknown[]): BodyReading {
  const readings = values.map((value) => readMessage(value));
  const ids = readings.flatMap(({ message }) => (message && isRequest(message) ? [message["id"]] : []));
  const twice = new Set(ids.filter((id, at) => ids.indexOf(id) !== at));
  if (readings.every(({ problem }) => !problem) && twice.size === 0) {
    return { body: readings.map(({ message }) => message) };
  }
  const answers = readings.flatMap(({ message, problem }) => {
    if (problem) return problem.id === undefined ? [] : [problemAnswer(problem)];
    if (!isRequest(message)) return [];
    const { id } = message;
    return [invalidRequestAnswer(id, twice.has(id) ? duplicateIdText("batch") : OTHER_INVALID)];
  });
  return {
    refusal: refuse(
      answers.length > 0 ? answers : invalidRequestAnswer(null, "Invalid request: the batch has no valid message."),
    ),
  };
}

/** Returns the messages of a body that has passed `readBody`. */
export function messagesIn(body: unknown): Fields[] {
  return [body].flat().filter((message): message is Fields => typeof message === "object" && message !== null);
}

/** Refuses a request whose id belongs to another open request. */
export function refuseDuplicateId(id: unknown): Response {
  return refuse(invalidRequestAnswer(id, duplicateIdText("session")));
}

/** True if the sender expects an answer. */
export function isRequest(message: Fields): boolean {
  return message["id"] !== undefined && message["method"] !== undefined;
}

function problemAnswer({ code, id = null, message }: MessageProblem) {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

function invalidRequestAnswer(id: unknown, message: string) {
  return { jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } };
}

function refuse(body: object): Response {
  return Response.json(body, { status: 400 });
}
