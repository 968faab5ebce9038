/** Reads requests of the Messages API. */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

import { z } from "zod";

const Text = z.union([z.string(), z.array(z.object({ type: z.string(), text: z.string().optional() }))]);

export const MessagesRequest = z.object({
  model: z.string(),
  max_tokens: z.number().optional(),
  stream: z.boolean().optional(),
  system: Text.optional(),
  messages: z.array(z.object({ role: z.string(), content: Text })),
  tools: z.array(z.object({ name: z.string().optional() })).optional(),
  thinking: z.unknown().optional(),
  output_config: z.looseObject({ format: z.unknown().optional() }).optional(),
  metadata: z.object({ user_id: z.string().optional() }).optional(),
});
export type MessagesRequest = z.infer<typeof MessagesRequest>;

const Conversation = z.object({ system: z.unknown().optional(), messages: z.unknown() });

/** Returns a digest of the system prompt and the messages, without marks for the cache, which move with each request. */
export function digestOf(body: unknown): string {
  const text = JSON.stringify(Conversation.parse(body), (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return createHash("sha256").update(text).digest("hex");
}

/** Claude Code's identity in a request. `agentId` is set exactly for requests of a subagent. */
export interface Caller {
  readonly sessionId: string | undefined;
  readonly agentId: string | undefined;
}

const UserId = z.object({ session_id: z.string() });

/** Returns the sender from headers. `metadata.user_id` has the session id too, as JSON. */
export function callerOf(headers: IncomingHttpHeaders, request?: MessagesRequest): Caller {
  return {
    sessionId: single(headers["x-claude-code-session-id"]) ?? sessionInMetadata(request?.metadata?.user_id),
    agentId: single(headers["x-claude-code-agent-id"]),
  };
}

/** Returns the beta features in the header `anthropic-beta`. */
export function betasOf({ "anthropic-beta": header }: IncomingHttpHeaders): string[] {
  const names = [header].flat().flatMap((value) => value?.split(",") ?? []);
  return names.map((name) => name.trim()).filter((name) => name !== "");
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function sessionInMetadata(userId: string | undefined): string | undefined {
  if (!userId?.startsWith("{")) return undefined;
  try {
    return UserId.safeParse(JSON.parse(userId)).data?.session_id;
  } catch {
    return undefined;
  }
}

/** Returns text blocks. Tool results and tool calls have none. */
export function textsOf(content: z.infer<typeof Text> | undefined): string[] {
  if (content === undefined) return [];
  if (typeof content === "string") return [content];
  return content.flatMap((block) => (block.type === "text" && block.text !== undefined ? [block.text] : []));
}

export function imagesIn(content: z.infer<typeof Text>): number {
  return typeof content === "string" ? 0 : content.filter(({ type }) => type === "image").length;
}

/** Start of a user's message during a turn: Claude Code sends it in a message with role `system`. */
const MID_TURN = "The user sent a new message while you were working";

/** Returns the text blocks of a message from the user (or from Claude Code in the user's place), otherwise []. */
export function userTexts({ role, content }: MessagesRequest["messages"][number]): string[] {
  const texts = textsOf(content);
  const fromUser = role === "user" || (role === "system" && texts[0]?.startsWith(MID_TURN));
  return fromUser ? texts : [];
}

/** Returns texts of all messages except the model's. Includes reminders of Claude Code. */
export function textsTold({ messages }: MessagesRequest): string[] {
  return messages.filter(({ role }) => role !== "assistant").flatMap(({ content }) => textsOf(content));
}

/** Returns the text of the last user message with any text; blocks are joined by newlines. */
export function lastUserText({ messages }: MessagesRequest): string {
  return (
    messages
      .map(userTexts)
      .findLast((texts) => texts.length > 0)
      ?.join("\n") ?? ""
  );
}
