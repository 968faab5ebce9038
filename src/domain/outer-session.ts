/**
 * Variables that an outer Claude Code session, or the application around it, passes to MCP servers. A Claude Code that inherits
 * any acts as a part of the outer session. The names are from Claude Code's binary; a test searches the binary for each.
 */
export const OUTER_SESSION_VARIABLES = [
  "CLAUDECODE",
  "CLAUDE_CODE_AGENT",
  "CLAUDE_CODE_CHILD_NOTES_DIR",
  "CLAUDE_CODE_CHILD_SESSION",
  "CLAUDE_CODE_ENTRYPOINT",
  "CLAUDE_CODE_ENVIRONMENT_KIND",
  "CLAUDE_CODE_EXECPATH",
  // Set by an application with a login for its own sessions: Claude Code then ignores the user's login ("Not logged in").
  "CLAUDE_CODE_LAUNCHER_RUNS_API_KEY_HELPER",
  "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST",
  // Channels to the application.
  "CLAUDE_CODE_MESSAGING_SOCKET",
  "CLAUDE_CODE_MESSAGING_TOKEN",
  "CLAUDE_CODE_SESSIONS_OAUTH_TOKEN",
  "CLAUDE_CODE_SSE_PORT",
  "CLAUDE_CODE_TASK_LIST_ID",
  "CLAUDE_CODE_WORKER_EPOCH",
  "CLAUDE_PROJECT_DIR",
  "CLAUDE_SESSION_INGRESS_TOKEN_FILE",
] as const;

/** Prefixes of further variables of the outer session. */
export const OUTER_SESSION_PREFIXES = [
  "CLAUDE_BG_",
  "CLAUDE_BRIDGE_",
  "CLAUDE_CODE_BRIDGE_",
  // Login by the application: `CLAUDE_CODE_HOST_AUTH_ENV_VAR`, `CLAUDE_CODE_HOST_CREDS_FILE`, ...
  "CLAUDE_CODE_HOST_",
  "CLAUDE_CODE_REMOTE_SESSION_",
  "CLAUDE_CODE_REMOTE_TOOLS_",
  "CLAUDE_CODE_SDK_HAS_",
  "CLAUDE_CODE_SDK_READS_",
  "CLAUDE_CODE_SESSION_",
  "CLAUDE_CODE_USER_DELEGATED_SESSION",
] as const;

/** Suffix of variables naming open files of another process, such as `CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR`. */
const DESCRIPTOR_SUFFIX = "_FILE_DESCRIPTOR";

const NAMES: ReadonlySet<string> = new Set(OUTER_SESSION_VARIABLES);

export function isOuterSessionVariable(name: string): boolean {
  if (NAMES.has(name) || (name.startsWith("CLAUDE_CODE_") && name.endsWith(DESCRIPTOR_SUFFIX))) return true;
  return OUTER_SESSION_PREFIXES.some((family) => name.startsWith(family));
}
