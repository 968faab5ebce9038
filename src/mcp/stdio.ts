import { pipeline, type Readable, type Writable } from "node:stream";
import type { McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { problemIn } from "./lines/check.ts";
import { LineGuard, type LongLine } from "./lines/guard.ts";
import type { ServerOptions } from "./server-options.ts";
import { createMcpServer } from "./server.ts";
import { Listens } from "./watch/listens.ts";

/**
 * The largest message that is taken, in bytes: the longest prompt fits even where each of its characters is written as
 * a six-byte escape.
 */
const MAX_MESSAGE = 33_554_432;

const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;

export interface StdioOptions extends ServerOptions {
  /** The client is gone: its end of stdin or stdout is closed. Not called after `close`. */
  readonly onClose: () => void;
  readonly streams?: { readonly stdin: Readable; readonly stdout: Writable };
}

/**
 * Serves the client that started this process, in the era that its first message decides. Nothing but the transport
 * ever writes to stdout.
 */
export function serveOverStdio(options: StdioOptions): { close(): Promise<void> } {
  const { log, onClose } = options;
  const { stdin, stdout } = options.streams ?? process;
  const onError = (error: Error) => log.warn("trouble on the MCP connection", { error });

  const onLongLine = (line: LongLine) => {
    log.warn("a message was too long", { ...line });
    if (line.id !== undefined) transport.refuse(line.id, tooLong(line));
  };
  const takes = (line: Buffer): boolean => {
    const problem = problemIn(line);
    if (!problem) return true;
    const { code, id, message } = problem;
    log.warn("a line on stdin is no message that can be taken", { problem: message });
    if (id !== undefined) transport.refuse(id, { code, message });
    return false;
  };
  const guard = new LineGuard(MAX_MESSAGE, onLongLine, takes);
  let closing = false;
  const onEnd = () => {
    listens.close();
    if (!closing) onClose();
  };
  const transport = new ClientTransport(guard, stdout, onEnd);
  let serving: McpServer | undefined;
  let isListening = false;
  const make = ({ era }: Pick<McpRequestContext, "era">) => {
    isListening = era === "modern";
    return (serving = createMcpServer(options, { era }));
  };
  const handle = serveStdio(make, { transport, onerror: onError });
  const update = (uri: string) => {
    // A client of the earlier era gets the updates that it has subscribed to, and does not know this request.
    if (isListening) serving?.server.sendResourceUpdated({ uri }).catch(onError);
  };
  const listens = new Listens(options.following, update);
  listenFirst(transport, listens, onError);
  pipeline(stdin, guard, () => undefined);
  return {
    close: async () => {
      closing = true;
      listens.close();
      await handle.close();
    },
  };
}

/** What listening changes is done before the SDK sees the message, and all that comes behind it waits for that. */
function listenFirst(transport: StdioServerTransport, listens: Listens, onError: (error: Error) => void): void {
  const { onmessage: deliver } = transport;
  let before: Promise<void> | undefined;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is no event target
  transport.onmessage = (message) => {
    if (!before && !listens.concerns(message)) return deliver?.(message);
    const passed = (before ?? Promise.resolve())
      .then(async () => listens.take(message))
      .then(deliver, (error: Error) => {
        onError(error);
        if ("id" in message && message.id !== undefined) transport.send(cannotFollow(message.id)).catch(onError);
      })
      .finally(() => {
        if (before === passed) before = undefined;
      });
    before = passed;
  };
}

/**
 * Reports its own end: a connection may end before it has a server instance, and an instance may end before the connection,
 * when a client only probes an era with it.
 */
class ClientTransport extends StdioServerTransport {
  readonly #stdout: Writable;
  readonly #onEnd: () => void;
  #ended = false;

  constructor(stdin: Readable, stdout: Writable, onEnd: () => void) {
    super(stdin, stdout, { maxBufferSize: Number.POSITIVE_INFINITY });
    this.#stdout = stdout;
    this.#onEnd = onEnd;
  }

  /** Null is for what has no id that could be made out: JSON-RPC has it so, and the SDK does not know it. */
  refuse(id: string | number | null, error: { code: number; message: string }): void {
    if (!this.#ended) this.#stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`);
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
  }
}

function cannotFollow(id: string | number) {
  const message = "The subscribed resource cannot be read. Try again; the server's log has the reason.";
  return { jsonrpc: "2.0" as const, id, error: { code: INTERNAL_ERROR, message } };
}

function tooLong({ bytes }: LongLine) {
  const message = `The message has ${String(bytes)} bytes; at most ${String(MAX_MESSAGE)} are allowed. Send less at once.`;
  return { code: INVALID_REQUEST, message };
}
