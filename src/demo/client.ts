import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { z } from "zod";
import { PRODUCT } from "../domain/names.ts";

/** Verification in a result, or in the event of a run that was not the last. */
export const Verification = z.looseObject({
  status: z.string(),
  attempts: z.number(),
  of: z.number(),
  commands: z.array(z.looseObject({ command: z.string(), exit: z.number().nullable() })).optional(),
  failed: z.looseObject({ command: z.string(), exit: z.number().nullable() }).optional(),
});
export type Verification = z.infer<typeof Verification>;

/** Fields of the server's answers that the demo reads. */
const Answer = z.looseObject({
  sessionId: z.string().optional(),
  status: z.string().optional(),
  nextCursor: z.number().optional(),
  events: z.array(z.looseObject({ type: z.string(), data: z.looseObject({}) })).optional(),
  actions: z
    .array(z.looseObject({ requestId: z.string(), toolName: z.string(), summary: z.string(), remainingMs: z.number() }))
    .optional(),
  result: z
    .looseObject({
      result: z.string(),
      isError: z.boolean(),
      numTurns: z.number(),
      totalCostUsd: z.number(),
      sessionTotalTurns: z.number(),
      sessionTotalCostUsd: z.number(),
      durationMs: z.number(),
      receipt: z
        .looseObject({
          turn: z.number(),
          by: z.string(),
          complete: z.boolean(),
          files: z.looseObject({ names: z.array(z.string()).optional() }).optional(),
        })
        .optional(),
      verification: Verification.optional(),
    })
    .optional(),
  sessions: z.array(z.looseObject({ processStarts: z.number().optional() })).optional(),
});
export type Answer = z.infer<typeof Answer>;

export interface ServerCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
}

export interface DemoClient {
  /** Throws with the server's message if the answer is an error. */
  call(tool: string, args: Record<string, unknown>): Promise<Answer>;
  readonly serverVersion: string;
  readonly protocolVersion: string;
  close(): Promise<void>;
}

/** Protocol revision of the demo, which plays against the server of the same package. */
const REVISION = "2026-07-28";

const PREFIX = "io.modelcontextprotocol/";
const ENVELOPE = {
  [`${PREFIX}protocolVersion`]: REVISION,
  [`${PREFIX}clientInfo`]: { name: `${PRODUCT}-demo`, version: "1.0.0" },
  [`${PREFIX}clientCapabilities`]: {},
};

const Message = z.looseObject({
  id: z.number().optional(),
  result: z.looseObject({}).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
type Message = z.infer<typeof Message>;

const Discovered = z.looseObject({
  _meta: z.looseObject({ [`${PREFIX}serverInfo`]: z.object({ version: z.string() }) }),
});

const Called = z.looseObject({
  isError: z.boolean().optional(),
  content: z.array(z.looseObject({ text: z.string().optional() })),
  structuredContent: z.unknown(),
});

/**
 * Starts the server like any MCP client: a child process with JSON-RPC over stdin and stdout. Sends requests by hand, because
 * the client of the MCP SDK takes 45 KB of the package. Once `signal` aborts, the server ends, and `connect` or the pending
 * calls reject.
 */
export async function connect(command: ServerCommand, signal: AbortSignal): Promise<DemoClient> {
  signal.throwIfAborted();
  const server = startServer(command);
  signal.addEventListener("abort", () => void server.end("SIGTERM"));
  try {
    const { _meta } = Discovered.parse(await server.request("server/discover", {}));
    return {
      serverVersion: _meta[`${PREFIX}serverInfo`].version,
      protocolVersion: REVISION,
      async call(tool, parameters) {
        const answer = Called.parse(await server.request("tools/call", { name: tool, arguments: parameters }));
        if (answer.isError === true)
          throw new Error(`${tool}: ${answer.content.map(({ text = "" }) => text).join("\n")}`);
        return Answer.parse(answer.structuredContent);
      },
      close: async () => server.end(),
    };
  } catch (error) {
    await server.end("SIGTERM");
    throw error;
  }
}

const ENDED = "The server has ended.";

function startServer({ args, command, env }: ServerCommand) {
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"], windowsHide: true });
  const ended = once(child, "close").catch(() => undefined);
  const waiting = new Map<number, (message: Message) => void>();
  let isEnded = false;
  const endCalls = () => {
    isEnded = true;
    for (const answer of waiting.values()) answer({ error: { message: ENDED } });
  };
  child.on("error", endCalls).on("close", endCalls);
  child.stdin.on("error", () => undefined);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = Message.parse(JSON.parse(line));
    if (message.id !== undefined) waiting.get(message.id)?.(message);
  });
  let last = 0;
  return {
    async request(method: string, params: Record<string, unknown>): Promise<unknown> {
      if (isEnded) throw new Error(`${method}: ${ENDED}`);
      const id = ++last;
      const answering = new Promise<Message>((resolve) => waiting.set(id, resolve));
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: ENVELOPE } })}\n`);
      const { error, result } = await answering;
      waiting.delete(id);
      if (error) throw new Error(`${method}: ${error.message}`);
      return result;
    },
    /** Resolves once the server has ended. With SIGTERM, the server does not answer open calls before its end. */
    async end(signal?: "SIGTERM"): Promise<void> {
      child.stdin.end();
      if (signal) child.kill(signal);
      const timers = [
        setTimeout(() => child.kill("SIGTERM"), ENDING_MS),
        setTimeout(() => child.kill("SIGKILL"), 2 * ENDING_MS),
      ];
      await ended;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** Time that the server has to end after the end of its input, and again after SIGTERM, ms. */
const ENDING_MS = 2_000;
