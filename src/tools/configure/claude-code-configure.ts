import { z } from "zod";
import { defineTool } from "../define.ts";

const Input = z.strictObject({
  action: z.enum(["enable_bypass", "disable_bypass", "get_config"]),
});

const ON = "Sessions may be started and switched with permissionMode bypassPermissions.";
const OFF = "permissionMode bypassPermissions is refused.";
const RUNNING = "What runs in it already goes on, with the prompts that wait behind it; no new prompt is taken.";

/** The bypass gate of this server (seed 001). Listed only where the operator asks for it. */
export const claudeCodeConfigure = defineTool({
  name: "claude_code_configure",
  title: "Configure the server",
  description:
    "Allow or refuse permissionMode bypassPermissions, in which tools run without asking, for this server; or tell how it stands.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async handle({ action }, call, { bypass }) {
    if (action !== "get_config") bypass.set(action === "enable_bypass", call.principal);
    const allowBypass = bypass.isAllowed();
    const message = action === "disable_bypass" ? `${OFF} ${RUNNING}` : allowBypass ? ON : OFF;
    return Promise.resolve({ answer: { allowBypass, message } });
  },
});
