// First message of each turn.

export const AGENTS = ["claude", "Explore", "general-purpose", "Plan", "statusline-setup"];

export function initOf(session, prompts) {
  const { cwd, model, permissions, settings } = session;
  return {
    type: "system",
    subtype: "init",
    cwd,
    tools: session.toolNames().map((name) => (name === "Agent" ? "Task" : name)),
    mcp_servers: [],
    model,
    permissionMode: permissions.mode,
    slash_commands: ["clear", "compact", "context", "usage"],
    apiKeySource: "ANTHROPIC_API_KEY",
    claude_code_version: "stand-in",
    output_style: "default",
    agents: AGENTS,
    skills: [],
    plugins: [],
    capabilities: ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"],
    original_cwd: cwd,
    additional_directories: settings.folders,
    ...(prompts.length > 0 && { user_message_uuids: prompts }),
  };
}
