import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { z } from "zod";
import type { Connection } from "./connection.ts";

export interface Log {
  level: string;
  data: unknown;
  logger?: string | undefined;
}

/** A call that reports while it runs: its answer, and the messages before it. */
export interface Streamed {
  readonly blocks: string[];
  readonly data: Record<string, unknown>;
  readonly isError: boolean;
  readonly logs: Log[];
  readonly progress: { progress: number; message?: string | undefined }[];
}

const Envelope = z.looseObject({
  isError: z.boolean().optional(),
  content: z.array(z.looseObject({ text: z.string() })),
  structuredContent: z.looseObject({}),
});

/** Log notifications reach a client of the 2026 era only for a request that asks for them. */
const WANTS_LOGS = { "io.modelcontextprotocol/logLevel": "debug" };

export interface StreamOptions {
  signal?: AbortSignal;
  /** Default: true. */
  wantsLogs?: boolean;
  onLog?: (log: Log) => void;
  /** Clients lose progress that reaches them together with the result: a test that counts on some has to wait for it here. */
  onProgress?: (message: string | undefined) => void;
}

/** One call at a time: notifications do not say which call they belong to. */
export async function stream(
  { client }: Pick<Connection, "client">,
  tool: string,
  args: Record<string, unknown>,
  { onLog, onProgress, signal, wantsLogs = true }: StreamOptions = {},
): Promise<Streamed> {
  const logs: Log[] = [];
  const progress: Streamed["progress"] = [];
  const hear = ({ data, level, logger }: Log) => {
    logs.push({ data, level, logger });
    onLog?.({ data, level, logger });
  };
  const request = { name: tool, arguments: args, ...(wantsLogs && { _meta: WANTS_LOGS }) };
  const onprogress = (news: Streamed["progress"][0]) => {
    progress.push(news);
    onProgress?.(news.message);
  };
  const options = { timeout: 120_000, onprogress };
  const settings = { ...options, ...(signal && { signal }) };
  if (client instanceof V1Client) {
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => hear(params));
  } else {
    client.setNotificationHandler("notifications/message", ({ params }) => hear(params));
  }
  const answer =
    client instanceof V1Client
      ? await client.callTool(request, undefined, settings)
      : await client.callTool(request, settings);
  const { content, isError = false, structuredContent } = Envelope.parse(answer);
  return { blocks: content.map(({ text }) => text), data: structuredContent, isError, logs, progress };
}
