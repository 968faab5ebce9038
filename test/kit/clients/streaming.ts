import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { z } from "zod";
import type { Connection } from "./connection.ts";

export interface Log {
  level: string;
  data: unknown;
  logger?: string | undefined;
}

/** Answer of a call, with all messages before the answer. */
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

/** A client of the 2026 era gets log notifications only for a request with this `_meta`. */
const WANTS_LOGS = { "io.modelcontextprotocol/logLevel": "debug" };

export interface StreamOptions {
  signal?: AbortSignal;
  /** Default: true. */
  wantsLogs?: boolean;
  onLog?: (log: Log) => void;
  /** Clients may lose progress that arrives together with the result: tests of a certain message must wait for `onProgress`. */
  onProgress?: (message: string | undefined) => void;
}

/** Run a single call at a time: notifications do not name their call. */
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
