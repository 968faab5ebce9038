import { z } from "zod";
import type { ToolCall, ToolDeps } from "../define.ts";
import { CALLER } from "../../domain/approvals/approver-name.ts";

const Usage = z.object({ context: z.object({ model: z.string().min(1) }) });

/** The model that the running Claude Code would use, in its real name; null when it does not say. Starts it where it does not run. */
export async function liveModel(sessionId: string, call: ToolCall, { engine }: ToolDeps): Promise<string | null> {
  const answer = await engine.control(call, sessionId, { do: "usage" }, CALLER);
  return Usage.safeParse(answer).data?.context.model ?? null;
}
