import { z } from "zod";
import { defineTool } from "./define.ts";

const Input = z.strictObject({
  action: z.enum(["enable_bypass", "disable_bypass", "get_config"]),
});

const ON = "Sessions may be started and switched with permissionMode bypassPermissions.";
const OFF = "permissionMode bypassPermissions is refused.";
const RUNNING = "A running turn in that mode continues to its end; no other starts.";

/** Switches the bypass gate of this server. Listed only with the toolset `configure`. */
export const claudeCodeConfigure = defineTool({
  name: "claude_code_configure",
  title: "Configure the server",
  description:
    "Allow or forbid permissionMode bypassPermissions (tools run without asking) on this server, or get the current setting.",
  input: Input,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: { get_config: "read", enable_bypass: "admin", disable_bypass: "admin" },
  async handle({ action }, call, { bypass, engine }) {
    if (action !== "get_config") await engine.checkMayConfigure();
    if (action !== "get_config") bypass.set(action === "enable_bypass", call.principal);
    const forbidden = action === "disable_bypass" ? await engine.enforceGate() : 0;
    const allowBypass = bypass.isAllowed();
    const message = action === "disable_bypass" ? `${OFF} ${RUNNING}${inSessions(forbidden)}` : allowBypass ? ON : OFF;
    return { answer: { allowBypass, message } };
  },
});

function inSessions(forbidden: number): string {
  if (forbidden === 0) return "";
  const which = forbidden === 1 ? "One session is" : `${String(forbidden)} sessions are`;
  return ` ${which} affected: waiting prompts are held and the process ends. Each has a notice.`;
}
