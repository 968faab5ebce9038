/**
 * Of an outer Claude Code session or of the application around it, which hands them to its MCP servers: a child that inherits
 * them takes itself for a part of that session. Names of Claude Code's binary; a test looks for each in it.
 */
export const OF_THE_OUTER_SESSION = [
  "CLAUDECODE",
  "CLAUDE_CODE_AGENT",
  "CLAUDE_CODE_CHILD_NOTES_DIR",
  "CLAUDE_CODE_CHILD_SESSION",
  "CLAUDE_CODE_ENTRYPOINT",
  "CLAUDE_CODE_ENVIRONMENT_KIND",
  "CLAUDE_CODE_EXECPATH",
  // The application has logged in for its own sessions: with these the user's login is not looked at ("Not logged in").
  "CLAUDE_CODE_LAUNCHER_RUNS_API_KEY_HELPER",
  "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST",
  // Channels to that application.
  "CLAUDE_CODE_MESSAGING_SOCKET",
  "CLAUDE_CODE_MESSAGING_TOKEN",
  "CLAUDE_CODE_SESSIONS_OAUTH_TOKEN",
  "CLAUDE_CODE_SSE_PORT",
  "CLAUDE_CODE_TASK_LIST_ID",
  "CLAUDE_CODE_WORKER_EPOCH",
  "CLAUDE_PROJECT_DIR",
  "CLAUDE_SESSION_INGRESS_TOKEN_FILE",
] as const;

/** The same, by how they begin. */
export const FAMILIES_OF_THE_OUTER_SESSION = [
  "CLAUDE_BG_",
  "CLAUDE_BRIDGE_",
  "CLAUDE_CODE_BRIDGE_",
  // CLAUDE_CODE_HOST_AUTH_ENV_VAR, CLAUDE_CODE_HOST_CREDS_FILE, ...: login by the application.
  "CLAUDE_CODE_HOST_",
  "CLAUDE_CODE_REMOTE_SESSION_",
  "CLAUDE_CODE_REMOTE_TOOLS_",
  "CLAUDE_CODE_SDK_HAS_",
  "CLAUDE_CODE_SDK_READS_",
  "CLAUDE_CODE_SESSION_",
  "CLAUDE_CODE_USER_DELEGATED_SESSION",
] as const;

/** CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR and its like name open files of another process. */
const DESCRIPTOR = "_FILE_DESCRIPTOR";

const NAMES: ReadonlySet<string> = new Set(OF_THE_OUTER_SESSION);

export function isOfTheOuterSession(name: string): boolean {
  if (NAMES.has(name) || (name.startsWith("CLAUDE_CODE_") && name.endsWith(DESCRIPTOR))) return true;
  return FAMILIES_OF_THE_OUTER_SESSION.some((family) => name.startsWith(family));
}
