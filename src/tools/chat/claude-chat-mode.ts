import { z } from "zod";
import { setPermissionMode } from "../../engine/actions/process.ts";
import { defineTool } from "../define.ts";
import { actorOf } from "../scope.ts";
import { Mode } from "./fields.ts";

/** Another permission mode from now on (seed 004). */
export const claudeChatMode = defineTool({
  name: "claude_chat_mode",
  title: "Change the permission mode",
  description: "Change the permission mode of a session.",
  input: z.strictObject({ ...setPermissionMode.fields, permissionMode: Mode }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  scope: setPermissionMode.scope,
  async handle({ permissionMode, sessionId }, call, deps) {
    await setPermissionMode.run(actorOf(call, deps), { sessionId, permissionMode });
    return { answer: { sessionId, permissionMode } };
  },
});
