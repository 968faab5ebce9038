import { z } from "zod";
import { CALLER } from "../../domain/approvals/answer-source.ts";
import { AppError, invalidArgument } from "../../domain/error.ts";
import { create } from "../../engine/actions/begin.ts";
import { SessionId } from "../../engine/actions/input.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { actingCaller } from "../scope.ts";
import { conversationOptions, sessionFields, askModel } from "./fields.ts";

const Input = z.strictObject({
  ...sessionFields,
  sessionId: SessionId.exactOptional().describe("session to continue. Default: a new one"),
});
type Input = z.infer<typeof Input>;

/** Opens a conversation. Answers once Claude Code runs and accepts prompts. */
export const claudeSessionCreate = defineTool({
  name: "claude_session_create",
  title: "Open a conversation",
  description:
    "Start Claude Code for a conversation, or continue a known session. Then send prompts with claude_chat_query, and end it with claude_session_close.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  scope: create.scope,
  async handle(args, call, deps) {
    const { sessionId, withheld: warnings } =
      args.sessionId === undefined
        ? await create.run(actingCaller(call, deps), { options: conversationOptions(args, deps) })
        : { sessionId: checkKnown(args, args.sessionId), withheld: [] };
    const live = askModel(sessionId, call, deps).catch(async (error: unknown) => {
      if (args.sessionId === undefined) await discard(sessionId, call, deps);
      throw error;
    });
    const model = await Promise.race([live, untilCancelled(call.signal)]);
    if (call.signal.aborted && args.sessionId === undefined) {
      // A cancelled caller does not learn the id, so the session could never be closed.
      await discard(sessionId, call, deps);
      throw new AppError("CANCELLED", "The call was cancelled, and its session closed.");
    }
    if (args.sessionId === undefined) endWithClient(sessionId, call, deps);
    const { spec } = await deps.engine.get(call.principal, sessionId);
    return { answer: { sessionId, model, cwd: spec.cwd, active: true, ...(warnings.length > 0 && { warnings }) } };
  },
});

function checkKnown(args: Input, sessionId: string): string {
  const stray = (["cwd", "model", "permissionMode", "systemPrompt"] as const).find((name) => args[name] !== undefined);
  if (stray === undefined) return sessionId;
  throw invalidArgument(
    stray,
    "is only for a new session; a known session keeps its options. Leave out this or sessionId.",
  );
}

/**
 * Closes the conversation when its client disconnects. Only in a daemon: any other server ends with its client. Not for a client
 * that follows tasks, because a resumed client takes up its tasks again.
 */
function endWithClient(
  sessionId: string,
  { client, principal }: ToolCall,
  { engine, outlivesClients }: ToolDeps,
): void {
  if (outlivesClients && !client.tasks)
    client.leaving?.add(sessionId, async () => engine.close(principal, sessionId, "the end of its client"));
}

/** Resolves when the call is cancelled, perhaps long before Claude Code has started. */
async function untilCancelled(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
}

/** Deletes a session whose Claude Code never ran. */
async function discard(sessionId: string, { principal }: ToolCall, { engine }: ToolDeps): Promise<void> {
  await engine.delete(principal, sessionId, CALLER).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
  });
}
