import { fieldsOf, parsed, textOf, type Fields } from "./outbound.ts";

/**
 * The lines of a Claude Code behind a shim, on their way to the Agent SDK. A message gets its number as a field. What the SDK keeps
 * for itself has none: by the time it is given a message, every line before is dealt with.
 */

export type Item =
  | { readonly n: number; readonly line: Buffer }
  | { readonly n: number; readonly code: number | null; readonly signal: string | null };

export interface InboundOptions {
  /** Writes a line to the SDK, given in parts. */
  readonly hand: (...parts: Buffer[]) => void;
  readonly onExit: (exit: Extract<Item, { code: number | null }>) => void;
  /** With the ids of the requests that Claude Code still waits for, when it has answered the `initialize` of a later owner. */
  readonly onPending: (requestIds: readonly string[]) => void;
}

/** What the former owner has left. */
export interface Former {
  /** Ids of what was written towards Claude Code. */
  readonly written: ReadonlySet<string>;
  /** The first answer to `initialize`, if there was one. */
  readonly initialized: Buffer | undefined;
}

/** The field that carries the number of a line. */
const LINE_FIELD = "_line";

/** Requests that this server answers: further lines wait until it has reported or answered them. */
const ANSWERED = new Set(["can_use_tool", "hook_callback", "elicitation"]);
/** Time limit for that, ms: a request that is not taken must not stop the process. */
const GATE_MS = 10_000;

const CONTROL = Buffer.from('{"type":"control_');

export class Inbound {
  readonly #options: InboundOptions;
  #queue: Item[] = [];
  #last = 0;
  #former: Former | undefined;
  #initializeId: string | undefined;
  /** The request that is to be reported first. A hook call is reported by the id that the hook is given. */
  #gate: { readonly ids: readonly string[]; readonly timer: NodeJS.Timeout } | undefined;
  #isOpen = false;

  /** `former` where another owner had the process before: nothing is handed on before Claude Code has answered `initialize`. */
  constructor(options: InboundOptions, former?: Former) {
    this.#options = options;
    this.#former = former;
  }

  /** The highest number that was received. */
  get last(): number {
    return this.#last;
  }

  push(item: Item): void {
    // After attaching once more, lines come again.
    if (item.n <= this.#last) return;
    this.#last = item.n;
    if (this.#former && "line" in item && this.#isInitialized(item.line)) return this.#release(item.line);
    this.#queue.push(item);
    if (this.#former && "code" in item) this.#releaseWithout(this.#former);
    this.#pump();
  }

  /** The SDK has written its `initialize`. */
  initializing(requestId: string): void {
    this.#initializeId = requestId;
    if (this.#former && this.#queue.some((item) => "code" in item)) this.#releaseWithout(this.#former);
  }

  /** `initialize` could not be written: Claude Code has closed its input, and its exit follows. */
  refused(): void {
    if (this.#former) this.#releaseWithout(this.#former);
  }

  /** The request was reported, or its answer is with the shim. */
  settle(requestId: string): void {
    if (this.#gate?.ids.includes(requestId)) this.#openGate();
  }

  /** The SDK reads no more: nothing waits for it. */
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
    const { response, type } = fieldsOf(parsed(line.toString()));
    return type === "control_response" && fieldsOf(response)["request_id"] === this.#initializeId;
  }

  /** The answer first: the SDK reports the requests that it lists. */
  #release(answer: Buffer): void {
    const written = this.#former?.written ?? new Set();
    this.#former = undefined;
    const { response } = fieldsOf(parsed(answer.toString()));
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

  /** It has ended: the SDK gets the first answer once more, so that it reads what was said to the end. */
  #releaseWithout({ initialized }: Former): void {
    if (this.#initializeId === undefined) return;
    const { response, type = "control_response" } = fieldsOf(parsed(initialized?.toString() ?? ""));
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
    if (!isControl(line)) return this.#options.hand(...numbered(line, n));
    const request = controlOf({ n, line }, "control_request");
    if (request && ANSWERED.has(request.subtype) && !this.#isOpen) {
      const timer = setTimeout(() => this.#openGate(), GATE_MS).unref();
      this.#gate = { ids: idsOf(request), timer };
    }
    this.#options.hand(line, LINE_BREAK);
  }
}

/** Claude Code writes `type` first. */
function isControl(line: Buffer): boolean {
  return line.subarray(0, CONTROL.length).equals(CONTROL);
}

interface Control {
  readonly requestId: string;
  readonly subtype: string;
  /** Tool use that a hook call is about. */
  readonly toolUseId: string;
}

function idsOf({ requestId, subtype, toolUseId }: Control): string[] {
  return subtype === "hook_callback" ? [requestId, toolUseId] : [requestId];
}

function controlOf(item: Item, type: string): Control | undefined {
  if ("code" in item || !isControl(item.line)) return undefined;
  const fields: Fields = fieldsOf(parsed(item.line.toString()));
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

/** A later field of the same name counts, so that no text of Claude Code can set the number. */
function numbered(line: Buffer, n: number): Buffer[] {
  if (line.length <= 2 || line[line.length - 1] !== BRACE) return [line, LINE_BREAK];
  return [line.subarray(0, -1), Buffer.from(`,"${LINE_FIELD}":${String(n)}}\n`)];
}

/** The number of a message's line, where it has come from a shim. It is no part of the message. */
export function takeNumber(message: object): number | undefined {
  const number: unknown = Reflect.get(message, LINE_FIELD);
  Reflect.deleteProperty(message, LINE_FIELD);
  return typeof number === "number" ? number : undefined;
}
