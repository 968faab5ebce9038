import { fieldsOf, textOf, type Fields } from "./outbound.ts";
import { parseJson } from "../../domain/json.ts";

/**
 * Passes lines of a Claude Code behind a shim to the Agent SDK. Each message gets its line number as a field. Control messages
 * get none, because the SDK handles them itself: once the SDK yields a message, all earlier lines are handled.
 */

export type InboundItem =
  | { readonly n: number; readonly line: Buffer }
  | { readonly n: number; readonly code: number | null; readonly signal: string | null };

export interface InboundOptions {
  /** Writes a line to the SDK, given in parts. */
  readonly hand: (...parts: Buffer[]) => void;
  readonly onExit: (exit: Extract<InboundItem, { code: number | null }>) => void;
  /** Called after Claude Code has answered the `initialize` of a later owner, with ids of the requests still open. */
  readonly onPending: (requestIds: readonly string[]) => void;
}

/** State left by the former owner. */
export interface FormerOwner {
  /** Ids of lines written to Claude Code. */
  readonly written: ReadonlySet<string>;
  /** First answer to `initialize`, if any. */
  readonly initialized: Buffer | undefined;
}

/** Field for the number of a line. */
const LINE_FIELD = "_line";

/** Requests answered by this server. Further lines wait until the request is reported or answered. */
const ANSWERED = new Set(["can_use_tool", "hook_callback", "elicitation"]);
/** Time limit for `#gate`, ms: an unreported request must not block the process. */
const GATE_MS = 10_000;

const CONTROL = Buffer.from('{"type":"control_');

export class Inbound {
  readonly #options: InboundOptions;
  #queue: InboundItem[] = [];
  #last = 0;
  #former: FormerOwner | undefined;
  #initializeId: string | undefined;
  /** Request to be reported before further lines. Hooks report by `toolUseId`, so `ids` has both ids. */
  #gate: { readonly ids: readonly string[]; readonly timer: NodeJS.Timeout } | undefined;
  #isOpen = false;

  /** With `former`, left by another owner, holds all lines back until Claude Code has answered `initialize`. */
  constructor(options: InboundOptions, former?: FormerOwner) {
    this.#options = options;
    this.#former = former;
  }

  /** Highest received number. */
  get last(): number {
    return this.#last;
  }

  push(item: InboundItem): void {
    // After a further `attach`, lines are repeated.
    if (item.n <= this.#last) return;
    this.#last = item.n;
    if (this.#former && "line" in item && this.#isInitialized(item.line)) return this.#release(item.line);
    this.#queue.push(item);
    if (this.#former && "code" in item) this.#releaseWithout(this.#former);
    this.#pump();
  }

  /** Call once the SDK has written `initialize`. */
  initializing(requestId: string): void {
    this.#initializeId = requestId;
    if (this.#former && this.#queue.some((item) => "code" in item)) this.#releaseWithout(this.#former);
  }

  /** Call if `initialize` could not be written: Claude Code has closed its input, and the exit follows. */
  refused(): void {
    if (this.#former) this.#releaseWithout(this.#former);
  }

  /** Call once the request is reported, or its answer has reached the shim. */
  settle(requestId: string): void {
    if (this.#gate?.ids.includes(requestId)) this.#openGate();
  }

  /** Passes everything on without waiting, because the SDK reads no more. */
  open(): void {
    this.#isOpen = true;
    this.#former = undefined;
    this.#openGate();
  }

  #openGate(): void {
    clearTimeout(this.#gate?.timer);
    this.#gate = undefined;
    this.#pump();
  }

  #isInitialized(line: Buffer): boolean {
    if (this.#initializeId === undefined || !isControl(line)) return false;
    const { response, type } = fieldsOf(parseJson(line.toString()));
    return type === "control_response" && fieldsOf(response)["request_id"] === this.#initializeId;
  }

  /** Passes `answer` on first, because the SDK reports the requests listed there. */
  #release(answer: Buffer): void {
    const written = this.#former?.written ?? new Set();
    this.#former = undefined;
    const { response } = fieldsOf(parseJson(answer.toString()));
    const pending = listOf(fieldsOf(response)["pending_permission_requests"]);
    const cancelled = new Set(
      this.#queue.flatMap((item) => controlOf(item, "control_cancel_request")?.requestId ?? []),
    );
    const isOver = (id: string) => cancelled.has(id) || written.has(`r:${id}`);
    this.#queue = this.#queue.filter((item) => {
      const request = controlOf(item, "control_request");
      return !request || (request.subtype !== "can_use_tool" && !isOver(request.requestId));
    });
    const asked = this.#queue.map((item) => controlOf(item, "control_request"));
    const hooks = asked.flatMap((request) => (request?.subtype === "hook_callback" ? idsOf(request) : []));
    this.#options.onPending([...pending.map((each) => textOf(fieldsOf(each)["request_id"])), ...hooks]);
    this.#options.hand(answer, LINE_BREAK);
    this.#pump();
  }

  /** If Claude Code has ended, repeats the first answer to `initialize`, so that the SDK reads the remaining lines. */
  #releaseWithout({ initialized }: FormerOwner): void {
    if (this.#initializeId === undefined) return;
    const { response, type = "control_response" } = fieldsOf(parseJson(initialized?.toString() ?? ""));
    const { pending_permission_requests: _, ...kept } = fieldsOf(response);
    const answer = { type, response: { subtype: "success", response: {}, ...kept, request_id: this.#initializeId } };
    this.#release(Buffer.from(JSON.stringify(answer)));
  }

  #pump(): void {
    while (!this.#former && !this.#gate) {
      const item = this.#queue.shift();
      if (!item) return;
      if ("code" in item) return this.#options.onExit(item);
      this.#hand(item.n, item.line);
    }
  }

  #hand(n: number, line: Buffer): void {
    if (!isControl(line)) return this.#options.hand(...withLineNumber(line, n));
    const request = controlOf({ n, line }, "control_request");
    if (request && ANSWERED.has(request.subtype) && !this.#isOpen) {
      const timer = setTimeout(() => this.#openGate(), GATE_MS).unref();
      this.#gate = { ids: idsOf(request), timer };
    }
    this.#options.hand(line, LINE_BREAK);
  }
}

/** Relies on `type` being the first field written by Claude Code. */
function isControl(line: Buffer): boolean {
  return line.subarray(0, CONTROL.length).equals(CONTROL);
}

interface Control {
  readonly requestId: string;
  readonly subtype: string;
  /** Tool use of a hook call. */
  readonly toolUseId: string;
}

function idsOf({ requestId, subtype, toolUseId }: Control): string[] {
  return subtype === "hook_callback" ? [requestId, toolUseId] : [requestId];
}

function controlOf(item: InboundItem, type: string): Control | undefined {
  if ("code" in item || !isControl(item.line)) return undefined;
  const fields: Fields = fieldsOf(parseJson(item.line.toString()));
  if (fields["type"] !== type) return undefined;
  const request = fieldsOf(fields["request"]);
  return {
    requestId: textOf(fields["request_id"]),
    subtype: textOf(request["subtype"]),
    toolUseId: textOf(request["tool_use_id"]),
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const BRACE = 0x7d;
const LINE_BREAK = Buffer.from("\n");

/** Appends the number as last field: of duplicate fields the last counts, so that no text of Claude Code can set the number. */
function withLineNumber(line: Buffer, n: number): Buffer[] {
  if (line.length <= 2 || line[line.length - 1] !== BRACE) return [line, LINE_BREAK];
  return [line.subarray(0, -1), Buffer.from(`,"${LINE_FIELD}":${String(n)}}\n`)];
}

/** Removes the line number from the message and returns the number; `undefined` without a shim. */
export function takeLineNumber(message: object): number | undefined {
  const number: unknown = Reflect.get(message, LINE_FIELD);
  Reflect.deleteProperty(message, LINE_FIELD);
  return typeof number === "number" ? number : undefined;
}
