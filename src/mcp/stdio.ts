import { pipeline, type Readable, type Writable } from "node:stream";
import { setImmediate as untilRead } from "node:timers/promises";
import type { McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import { serveStdio, type StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { ClientTransport } from "./client-transport.ts";
import { readLine } from "./lines/read-line.ts";
import { LineGuard, type LongLine } from "./lines/line-guard.ts";
import type { ServerOptions } from "./server-options.ts";
import { createMcpServer } from "./mcp-server.ts";
import { StdioSubscriptions } from "./watch/stdio-subscriptions.ts";

/** Maximum bytes of a message: the longest prompt fits, even with each character escaped in six bytes. */
const MAX_MESSAGE_BYTES = 33_554_432;

const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;

export interface StdioOptions extends ServerOptions {
  /**
   * Called when the client is gone: its output is closed, or its input has ended and all requests are answered. Not called
   * after `close`.
   */
  readonly onClose: () => void;
  /** Time limit for answers after the end of the input, ms. */
  readonly lastAnswersMs: number;
  readonly streams?: { readonly stdin: Readable; readonly stdout: Writable };
}

/** Serves the client that has started this process, in the era of its first message. Only the transport writes to stdout. */
export function serveOverStdio(options: StdioOptions): { close(): Promise<void> } {
  const { log, onClose } = options;
  const { stdin, stdout } = options.streams ?? process;
  const onError = (error: Error) => log.warn("an error on the MCP connection", { error });

  const onLongLine = (line: LongLine) => {
    log.warn("a message was too long", { ...line });
    if (line.id !== undefined) transport.refuse(line.id, tooLong(line));
  };
  const take = (given: Buffer): Buffer | undefined => {
    const { line, message, problems } = readLine(given);
    for (const { id, code, message: problem } of problems) {
      log.warn("a line on stdin is not a valid message", { problem });
      if (id !== undefined) transport.refuse(id, { code, message: problem });
    }
    return message && transport.acceptMessage(message) ? line : undefined;
  };
  const atEnd = async (): Promise<void> => {
    await untilRead();
    await transport.lastAnswers();
    if (serving) await options.events?.streams.end(serving.server);
    // Gives listen requests their results, too.
    await handle.close();
  };
  const guard = new LineGuard({ most: MAX_MESSAGE_BYTES, onLongLine, take, atEnd });
  let closing = false;
  const onEnd = () => {
    listens.close();
    if (!closing) onClose();
  };
  const onLate = () => options.leaving?.endWaits();
  const transport = new ClientTransport({ stdin: guard, stdout, lastAnswersMs: options.lastAnswersMs, onLate, onEnd });
  let serving: McpServer | undefined;
  let isListening = false;
  const make = ({ era }: Pick<McpRequestContext, "era">) => {
    isListening = era === "modern";
    return (serving = createMcpServer(options, { era }));
  };
  const handle = serveStdio(make, { transport, onerror: onError });
  const update = (uri: string) => {
    // Clients of the earlier era are notified through their own subscriptions, and do not know `subscriptions/listen`.
    if (isListening) serving?.server.sendResourceUpdated({ uri }).catch(onError);
  };
  const listens = new StdioSubscriptions(options.following, update);
  interceptListening(transport, listens, onError);
  pipeline(stdin, guard, () => undefined);
  return {
    close: async () => {
      closing = true;
      listens.close();
      await handle.close();
    },
  };
}

/** Handles listen requests and their cancellations before the SDK does. Later messages wait, so that the order is kept. */
function interceptListening(
  transport: StdioServerTransport,
  listens: StdioSubscriptions,
  onError: (error: Error) => void,
): void {
  const { onmessage: deliver } = transport;
  let before: Promise<void> | undefined;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
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

function cannotFollow(id: string | number) {
  const message = "The subscribed resource cannot be read. Try again; the server's log has the reason.";
  return { jsonrpc: "2.0" as const, id, error: { code: INTERNAL_ERROR, message } };
}

function tooLong({ bytes }: LongLine) {
  const message = `The message has ${String(bytes)} bytes; at most ${String(MAX_MESSAGE_BYTES)} are allowed. Send less at once.`;
  return { code: INVALID_REQUEST, message };
}
