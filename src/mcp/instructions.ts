import type { McpServer } from "@modelcontextprotocol/server";
import { instructionsFor } from "../tools/tool-names.ts";
import type { ServerOptions } from "./server-options.ts";
import { limitsFor } from "./tool-call.ts";
import { isId, readField, type Id } from "./unanswered-requests.ts";

/**
 * Gives each client its own instructions: the SDK has one text for all, fixed before the client has described itself. Works on
 * messages, because the SDK lets no handler replace its answers to these requests.
 */

type Transport = Parameters<McpServer["connect"]>[0];
type Message = Parameters<Transport["send"]>[0];

const INTRODUCTIONS: readonly unknown[] = ["initialize", "server/discover"];

/** Rewrites introductions on each transport that `server` connects to from now on. */
export function instructEach(server: McpServer, options: Pick<ServerOptions, "limits" | "tasks" | "toolNames">): void {
  const connect = server.connect.bind(server);
  server.connect = async (transport) => {
    const asked = new Map<Id, string>();
    const heard = transport.onmessage;
    // Runs before the handlers of the SDK, which keeps a function that is set before `connect`.
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
    transport.onmessage = (message, extra) => {
      heard?.(message, extra);
      const { id, method, params } = { id: undefined, method: undefined, params: undefined, ...message };
      if (isId(id) && INTRODUCTIONS.includes(method)) asked.set(id, textFor(params, options));
    };
    const send = transport.send.bind(transport);
    transport.send = async (message, sending) => send(withInstructions(message, asked), sending);
    return connect(transport);
  };
}

function textFor(params: unknown, options: Pick<ServerOptions, "limits" | "tasks" | "toolNames">): string {
  const limits = limitsFor(readField(params, "_meta"), readField(params, "clientInfo"), options);
  return instructionsFor(options.toolNames, limits);
}

/** Replaces `instructions` in the answer to a request in `asked`. */
function withInstructions(message: Message, asked: Map<Id, string>): Message {
  const id = readField(message, "id");
  const instructions = isId(id) && readField(message, "method") === undefined ? asked.get(id) : undefined;
  if (!isId(id) || instructions === undefined) return message;
  asked.delete(id);
  if (!("result" in message) || readField(message.result, "instructions") === undefined) return message;
  return { ...message, result: { ...message.result, instructions } };
}
