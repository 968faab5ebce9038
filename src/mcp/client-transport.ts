import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Fields } from "./message.ts";
import { duplicateIdText, isId, UnansweredRequests, type Id } from "./unanswered-requests.ts";

const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;

/** Ends waiting calls this long before the end of `lastAnswersMs`, ms, so that the answers are sent in time. */
const ANSWERING_MS = 2_000;

interface TransportOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Time limit for answers after the end of the input, ms. */
  readonly lastAnswersMs: number;
  /** Called `ANSWERING_MS` before that limit: calls must stop waiting. */
  readonly onLate: () => void;
  readonly onEnd: () => void;
}

/**
 * Connection to a client, which may end its input and still read. Reports its own end in `onEnd`, because a connection may end
 * before a server instance exists, and an instance may end before the connection if a client only probes an era.
 */
export class ClientTransport extends StdioServerTransport {
  readonly #options: TransportOptions;
  readonly #unanswered = new UnansweredRequests();
  /** Ids of open requests of this server to the client. */
  readonly #asked = new Set<Id>();
  #hasInput = true;
  #ended = false;
  #stopWaiting: () => void = () => undefined;

  constructor(options: TransportOptions) {
    super(options.stdin, options.stdout, { maxBufferSize: Number.POSITIVE_INFINITY });
    this.#options = options;
  }

  /**
   * Writes an error response. `id` is JSON text, "null" if the message has no readable id: JSON-RPC requires null, and the SDK
   * has no type for such a response.
   */
  refuse(id: string, error: { code: number; message: string }): void {
    if (this.#ended || this.#options.stdout.destroyed) return;
    this.#options.stdout.write(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}\n`);
  }

  /**
   * Notes a message of the client. Returns true if the SDK should get the message; refuses a request with the id of another
   * open request.
   */
  acceptMessage(message: Fields): boolean {
    const { id, method } = message;
    if (method === undefined && isId(id)) this.#asked.delete(id);
    if (method !== undefined && this.#unanswered.has(id)) {
      this.refuse(JSON.stringify(id), { code: INVALID_REQUEST, message: duplicateIdText("connection") });
      return false;
    }
    this.#unanswered.noteReceived(message);
    this.#endWaitIfAnswered();
    return true;
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    const fields: Fields = { ...message };
    const { id, method } = fields;
    if (isId(id) && method !== undefined) {
      if (!this.#hasInput) return this.#cannotAnswer(id);
      this.#asked.add(id);
    }
    // `super.send` writes before it returns, so the answer counts as sent at once.
    const sent = super.send(message);
    this.#unanswered.noteSent(fields);
    this.#endWaitIfAnswered();
    return sent;
  }

  /**
   * Call after the end of the input. Resolves when each open request was answered: after `lastAnswersMs` at the latest, with an
   * error for the rest; at once if the client no longer reads.
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

  #endWaitIfAnswered(): void {
    if (this.#unanswered.isEmpty) this.#stopWaiting();
  }

  #cannotAnswer(id: Id): void {
    this.#asked.delete(id);
    const error = { code: INTERNAL_ERROR, message: "The client has ended its input and cannot answer requests." };
    setImmediate(() => this.onmessage?.({ jsonrpc: "2.0", id, error }));
  }
}

function noAnswer(ms: number): string {
  const advice = "look with claude_code_check, or list sessions with claude_code_session, before you repeat the call";
  return `The input has ended, and this call was not answered within ${String(ms / 1_000)} s. Recorded work is kept: ${advice}.`;
}
