import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Fields } from "./message.ts";
import { idTaken, isId, Unanswered, type Id } from "./unanswered.ts";

const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;

/** Before the end of that time waits are ended, for their calls to be answered within it, ms. */
const ANSWERING_MS = 2_000;

interface TransportOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** After the end of its input a client is answered for this long, ms. */
  readonly lastAnswersMs: number;
  /** Called when that time is about to end: calls are to wait no longer. */
  readonly onLate: () => void;
  readonly onEnd: () => void;
}

/**
 * The connection to a client, which may end its input and still read. Reports its own end: a connection may end before it has a server
 * instance, and an instance may end before the connection, when a client only probes an era with it.
 */
export class ClientTransport extends StdioServerTransport {
  readonly #options: TransportOptions;
  readonly #unanswered = new Unanswered();
  /** Open requests of this server. */
  readonly #asked = new Set<Id>();
  #hasInput = true;
  #ended = false;
  #stopWaiting: () => void = () => undefined;

  constructor(options: TransportOptions) {
    super(options.stdin, options.stdout, { maxBufferSize: Number.POSITIVE_INFINITY });
    this.#options = options;
  }

  /** `id` is JSON, "null" for what has no id that could be made out: JSON-RPC has it so, and the SDK does not know it. */
  refuse(id: string, error: { code: number; message: string }): void {
    if (this.#ended || this.#options.stdout.destroyed) return;
    this.#options.stdout.write(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}\n`);
  }

  /** Notes a message of the client. Returns whether the SDK is to get it: a request with the id of another is refused. */
  hears(message: Fields): boolean {
    const { id, method } = message;
    if (method === undefined && isId(id)) this.#asked.delete(id);
    if (method !== undefined && this.#unanswered.has(id)) {
      this.refuse(JSON.stringify(id), { code: INVALID_REQUEST, message: idTaken("connection") });
      return false;
    }
    this.#unanswered.heard(message);
    this.#look();
    return true;
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    const fields: Fields = { ...message };
    const { id, method } = fields;
    if (isId(id) && method !== undefined) {
      if (!this.#hasInput) return this.#cannotAnswer(id);
      this.#asked.add(id);
    }
    // Written before this returns: nothing waits for the end of it.
    const sent = super.send(message);
    this.#unanswered.said(fields);
    this.#look();
    return sent;
  }

  /**
   * The input has ended. Resolves when each open request was answered: at the latest when its time is over, with an error where it
   * has no answer then; or at once where no client reads.
   */
  async lastAnswers(): Promise<void> {
    this.#hasInput = false;
    for (const id of this.#asked) this.#cannotAnswer(id);
    const { lastAnswersMs, onLate, stdout } = this.#options;
    if (this.#unanswered.isEmpty || this.#ended || stdout.destroyed) return;
    const over = new Promise<void>((resolve) => (this.#stopWaiting = resolve));
    const late = setTimeout(onLate, Math.max(0, lastAnswersMs - ANSWERING_MS));
    const last = setTimeout(this.#stopWaiting, lastAnswersMs);
    stdout.once("close", this.#stopWaiting);
    await over;
    clearTimeout(late);
    clearTimeout(last);
    const error = { code: INTERNAL_ERROR, message: noAnswer(lastAnswersMs) };
    for (const id of this.#unanswered.ids) this.refuse(JSON.stringify(id), error);
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#ended) return;
    this.#ended = true;
    this.#stopWaiting();
    this.#options.onEnd();
  }

  #look(): void {
    if (this.#unanswered.isEmpty) this.#stopWaiting();
  }

  #cannotAnswer(id: Id): void {
    this.#asked.delete(id);
    const error = { code: INTERNAL_ERROR, message: "The client has ended its input: it can answer no request." };
    setImmediate(() => this.onmessage?.({ jsonrpc: "2.0", id, error }));
  }
}

function noAnswer(ms: number): string {
  const advice = "look with claude_code_check, or list sessions with claude_code_session, before you repeat the call";
  return `The input has ended, and this call had no answer within ${String(ms / 1_000)} s of that. Nothing that was recorded is lost: ${advice}.`;
}
