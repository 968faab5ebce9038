import { isId } from "./fields.ts";

/**
 * Tracks the control requests that pass a shim: open requests of Claude Code, and the first answer to `initialize`, which a
 * later owner may need. Usually reads only the start of a line, because Claude Code writes `type` and `request_id` first.
 */

/** Maximum number of open requests, many more than Claude Code has at a time. Above the maximum, the oldest is forgotten. */
const MAX_OPEN = 1_024;
/** Bytes searched for `request_id` before the whole line is parsed. */
const HEAD = 512;
/** Maximum size of a line to parse, bytes. Parsing takes several times the memory of a line. */
const MAX_PARSED = 1_048_576;
const FIRST_FIELDS =
  /^\{"type":"(control_request|control_response|control_cancel_request)"(?:,"response":\{"subtype":"\w+")?,"request_id":"([^"\\]+)"/;
const CONTROL_MARK = Buffer.from('"control_');
const INITIALIZE = Buffer.from('"initialize"');

interface ControlLine {
  readonly type: string;
  readonly requestId: string;
}

export class ControlRequests {
  readonly #open = new Set<string>();
  #initializeId: string | undefined;
  #initialized: Buffer | undefined;

  get open(): string[] {
    return [...this.#open];
  }

  /** Line with the first answer to `initialize`. */
  get initializeAnswer(): Buffer | undefined {
    return this.#initialized;
  }

  /** Notes a line written to Claude Code. The `lineId` of a response is `r:` and the id of its request. */
  noteWritten(lineId: string, line: Buffer): void {
    if (lineId.startsWith("r:")) this.#open.delete(lineId.slice(2));
    if (this.#initializeId === undefined && line.includes(INITIALIZE)) this.#initializeId = initializeIdOf(line);
  }

  /** Notes a line of Claude Code. */
  noteRead(line: Buffer): void {
    const control = parseControl(line);
    if (control?.type === "control_request") this.#opened(control.requestId);
    if (control?.type === "control_cancel_request") this.#open.delete(control.requestId);
    if (control?.type === "control_response" && control.requestId === this.#initializeId) this.#initialized ??= line;
  }

  #opened(requestId: string): void {
    // Skips an id that the shim's protocol cannot carry, because no owner could refer to the request.
    if (!isId(requestId)) return;
    this.#open.add(requestId);
    const [oldest] = this.#open;
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
  }
}

function parseControl(line: Buffer): ControlLine | undefined {
  const [, type, requestId] = FIRST_FIELDS.exec(line.toString("utf8", 0, HEAD)) ?? [];
  if (type !== undefined && requestId !== undefined) return { type, requestId };
  if (line.length > MAX_PARSED || !line.includes(CONTROL_MARK)) return undefined;
  const { request_id: own, response, type: parsedType } = fieldsOf(parsed(line));
  const id = parsedType === "control_response" ? fieldsOf(response)["request_id"] : own;
  return typeof parsedType === "string" && typeof id === "string" ? { type: parsedType, requestId: id } : undefined;
}

function initializeIdOf(line: Buffer): string | undefined {
  const { request, request_id: requestId, type } = fieldsOf(parsed(line));
  const isInitialize = type === "control_request" && fieldsOf(request)["subtype"] === "initialize";
  return isInitialize && typeof requestId === "string" ? requestId : undefined;
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    // Invalid JSON is not a control request.
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
