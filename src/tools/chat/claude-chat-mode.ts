import { z } from "zod";
import { defineTool } from "../define.ts";
import { BY, Mode, ofSession } from "./fields.ts";

/** Another permission mode from now on (seed 004). */
export const claudeChatMode = defineTool({
  name: "claude_chat_mode",
  title: "Change the permission mode",
  description: "Change the permission mode of a session.",
  input: z.strictObject({ ...ofSession, permissionMode: Mode }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  scope: "run",
  async handle({ permissionMode, sessionId }, call, { engine }) {
    await engine.control(call, sessionId, { do: "configure", permissionMode }, BY);
    return { answer: { sessionId, permissionMode } };
  },
});
