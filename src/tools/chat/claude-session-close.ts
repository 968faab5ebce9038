import { z } from "zod";
import { close } from "../../engine/actions/lifecycle.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { actorOf } from "../scope.ts";

/** Ends a conversation for good (seed 004). */
export const claudeSessionClose = defineTool({
  name: "claude_session_close",
  title: "Close a conversation",
  description: "Close a session for good and end its Claude Code. activeSessions: how many others of yours are open.",
  input: z.strictObject(close.fields),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: close.scope,
  async handle({ sessionId }, call, deps) {
    await close.run(actorOf(call, deps), { sessionId });
    return { answer: { sessionId, activeSessions: await activeSessions(call, deps) } };
  },
});

const PAGE = 200;

/** Sessions of the caller that take prompts, whether a Claude Code runs for them or the next prompt starts one. */
async function activeSessions({ principal }: ToolCall, { engine }: ToolDeps): Promise<number> {
  const open = { principal, limit: PAGE, statuses: ["running", "waiting_permission", "idle", "error"] as const };
  let active = 0;
  let before: { updatedAt: number; id: string } | undefined;
  do {
    const page = await engine.list({ ...open, ...(before && { before }) });
    active += page.length;
    before = page.length < PAGE ? undefined : page.at(-1);
  } while (before);
  return active;
}
