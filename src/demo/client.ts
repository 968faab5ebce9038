import { Client } from "@modelcontextprotocol/client";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { z } from "zod";

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
  /** Added to `getDefaultEnvironment()` (PATH, HOME and the like). */
  env: Record<string, string>;
}

export interface DemoClient {
  /** Throws with the server's message if the answer is an error. */
  call(tool: string, args: Record<string, unknown>): Promise<Answer>;
  readonly serverVersion: string;
  readonly protocolVersion: string;
  close(): Promise<void>;
}

/**
 * Starts the server like any MCP client: a child process with JSON-RPC over stdin and stdout. Once `signal` aborts, the
 * connection closes, and `connect` or the pending calls reject.
 */
export async function connect({ command, args, env }: ServerCommand, signal: AbortSignal): Promise<DemoClient> {
  signal.throwIfAborted();
  const transport = new StdioClientTransport({ command, args, env: { ...getDefaultEnvironment(), ...env } });
  const client = new Client(
    { name: "claude-agents-mcp-demo", version: "1.0.0" },
    { versionNegotiation: { mode: "auto" } },
  );
  let ended: Promise<void> | undefined;
  signal.addEventListener("abort", () => void (ended = end(transport)));
  await client.connect(transport).catch(async (error: unknown) => {
    await ended;
    throw error;
  });
  return {
    serverVersion: client.getServerVersion()?.version ?? "unknown",
    protocolVersion: client.getNegotiatedProtocolVersion() ?? "unknown",
    async call(tool, parameters) {
      const answer = await client.callTool({ name: tool, arguments: parameters });
      if (answer.isError) throw new Error(`${tool}: ${textOf(answer.content)}`);
      return Answer.parse(answer.structuredContent);
    },
    close: async () => ended ?? client.close(),
  };
}

/**
 * Resolves once the server has ended. SIGTERM ends open calls, which the server would otherwise answer after the end of its
 * input. Not `client.close()`, a no-op during the negotiation of the protocol version.
 */
async function end(transport: StdioClientTransport): Promise<void> {
  try {
    if (transport.pid !== null) process.kill(transport.pid, "SIGTERM");
  } catch {
    // The server has ended by itself.
  }
  await transport.close();
}

function textOf(content: readonly { type: string; text?: unknown }[]): string {
  return content.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}
