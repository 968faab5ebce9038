import { z } from "zod";
import { SessionOptions } from "../../domain/options.ts";
import { CALLER } from "../../domain/approvals/answer-source.ts";
import { resolveFolder, promptFields } from "../prompt.ts";
import type { ToolDeps, ToolCall } from "../define.ts";

/** Parameters shared by the chat tools, and their conversion to options. */

export const Model = z.enum(["opus", "sonnet", "haiku"]);
export const Mode = z.enum(["default", "acceptEdits", "plan", "bypassPermissions"]);

/** Parameters for opening a conversation. */
export const sessionFields = {
  cwd: SessionOptions.shape.cwd.exactOptional(),
  model: Model.exactOptional().describe("Default: Claude Code's"),
  permissionMode: Mode.exactOptional().describe("Default: default (asks, except for reads, Agent, Skill)"),
  systemPrompt: z.string().min(1).exactOptional().describe("replaces Claude Code's. Default: none"),
};

export const messageFields = {
  prompt: promptFields.prompt,
  includeThinking: z.boolean().exactOptional().describe("send and return thinking. Default: false"),
};

type Chosen = z.infer<z.ZodObject<typeof sessionFields>>;

export function conversationOptions(
  { cwd, model, permissionMode, systemPrompt }: Chosen,
  deps: ToolDeps,
): SessionOptions {
  return {
    cwd: resolveFolder(cwd, deps),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(systemPrompt !== undefined && { systemPrompt }),
  };
}

const Usage = z.object({ context: z.object({ model: z.string().min(1) }) });

/** Returns the full name of the model in use, or `null` if Claude Code does not report any. Starts Claude Code if necessary. */
export async function askModel(sessionId: string, call: ToolCall, { engine }: ToolDeps): Promise<string | null> {
  const answer = await engine.control(call, sessionId, { do: "usage" }, CALLER);
  return Usage.safeParse(answer).data?.context.model ?? null;
}
