import { pipeline, type Readable, type Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { LineGuard, type LongLine } from "./line-guard.ts";
import type { ServerOptions } from "./options.ts";
import { createMcpServer } from "./server.ts";

/**
 * The largest message that is taken, in bytes: the longest prompt fits even where each of its characters is written as
 * a six-byte escape.
 */
const MESSAGE_MAX = 33_554_432;

const INVALID_REQUEST = -32_600;

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

  const guard = new LineGuard(MESSAGE_MAX, (line) => {
    log.warn("a message was too long", { ...line });
    if (line.id !== undefined) transport.send(tooLong(line.id, line)).catch(onError);
  });
  let closing = false;
  const onEnd = () => {
    if (!closing) onClose();
  };
  const transport = new ClientTransport(guard, stdout, onEnd);
  const handle = serveStdio(() => createMcpServer(options), { transport, onerror: onError });
  pipeline(stdin, guard, () => undefined);
  return {
    close: async () => {
      closing = true;
      await handle.close();
    },
  };
}

/**
 * Tells of its own end: a connection may end before it has a server instance, and an instance may end before the
 * connection does, when a client only probes an era with it.
 */
class ClientTransport extends StdioServerTransport {
  readonly #onEnd: () => void;
  #ended = false;

  constructor(stdin: Readable, stdout: Writable, onEnd: () => void) {
    super(stdin, stdout, { maxBufferSize: Number.POSITIVE_INFINITY });
    this.#onEnd = onEnd;
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
  }
}

function tooLong(id: string | number, { bytes }: LongLine) {
  const message = `The message has ${String(bytes)} bytes; at most ${String(MESSAGE_MAX)} are taken. Send less at once.`;
  return { jsonrpc: "2.0" as const, id, error: { code: INVALID_REQUEST, message } };
}
