import { approvalFields, sandboxFields } from "./approvals/settings.ts";
import { queryFields } from "./query.ts";
import { choice, choices, count, directories, milliseconds, optionalMilliseconds, path, toggle } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/** Settings of a connection. Clients of a server may differ in them. */
export const termFields = {
  maxWaitMs: optionalMilliseconds({ least: 1_000, most: 3_600_000 }, "45000; 1800000 where the client is Claude Code", {
    flag: "max-wait-ms",
    variable: "CLAUDE_CODE_MCP_MAX_WAIT_MS",
    meaning: "Maximum time that a tool call may block.",
  }),
  turnMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 14_400_000 },
    {
      flag: "turn-max-ms",
      variable: "CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS",
      meaning:
        "Maximum duration of a turn. It then ends with reason time_limit. Time spent waiting for an approval does not count.",
    },
  ),
  idleProcessMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "idle-process-ms",
      variable: "CLAUDE_CODE_MCP_SESSION_TTL_MS",
      meaning: "Close the process of a session after this idle time. The session itself stays and accepts replies.",
    },
  ),
  unattended: choice(["wait", "deny"], "wait", {
    flag: "unattended",
    variable: "CLAUDE_CODE_MCP_UNATTENDED",
    meaning:
      "Handling of a request that no connected client can show. With a daemon, wait keeps it for the next client, deny denies it at once.",
  }),
  unattendedMaxUsd: count(
    { least: 1, most: 1_000_000, fallback: 10 },
    {
      flag: "unattended-max-usd",
      variable: "CLAUDE_CODE_MCP_UNATTENDED_MAX_USD",
      meaning:
        "Maximum cost of a session's unattended work, in whole USD. At this cost its waiting prompts are held, and its turn is interrupted at the next tool call.",
    },
  ),
  permissionMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "permission-max-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_MAX_MS",
      meaning:
        "Deny a request that no approver has seen within this time. Also limits the caller's time to answer. With a daemon and --unattended wait, the time begins when the request is first shown.",
    },
  ),
  allowBypass: toggle({
    flag: "allow-bypass",
    variable: "CLAUDE_CODE_MCP_ALLOW_BYPASS",
    meaning: "Allow mode bypassPermissions, in which tools run unasked.",
  }),
  ...approvalFields,
  ...sandboxFields,
  allowDiskResume: toggle({
    flag: "allow-disk-resume",
    variable: "CLAUDE_CODE_MCP_ALLOW_DISK_RESUME",
    meaning:
      "Allow replies to sessions that only Claude Code has on disk. If CLAUDE_CODE_MCP_RESUME_SECRET is set in the environment, a resumeToken is required.",
  }),
  allowSensitiveSessionDetails: toggle({
    flag: "allow-sensitive-session-details",
    variable: "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS",
    meaning:
      "Show folders, prompts, titles and options of sessions. Callers ask for them with includeSensitive, and may filter by them.",
  }),
  allowDirs: directories(
    "none (anywhere)",
    {
      flag: "allow-dir",
      variable: "CLAUDE_CODE_MCP_ALLOW_DIRS",
      meaning:
        'Restrict sessions to these folders and those inside. Applies to the real paths of cwd, additionalDirectories, attachments, debugFile and sessions from disk. Over HTTP, users other than the operator need a list: this one, or allowDirs in principals ("any" allows every folder).',
    },
    true,
  ),
  trustDirs: directories("none", {
    flag: "trust-dir",
    variable: "CLAUDE_CODE_MCP_TRUST_DIRS",
    meaning:
      "Trust these folders and those inside. Project settings, hooks and .mcp.json run there, and allow rules of .claude/settings.json apply. Folders that Claude Code itself has recorded as trusted are trusted too.",
  }),
  claudePath: path("the Agent SDK's, else the first usable one of PATH and of its installers", {
    flag: "claude-path",
    variable: "CLAUDE_CODE_MCP_CLAUDE_PATH",
    meaning: "Path of the Claude Code executable. It must answer --version and be new enough (docs/installation.md).",
  }),
  maxDepth: count(
    { least: 0, most: 10, fallback: 1 },
    {
      flag: "max-depth",
      variable: "CLAUDE_CODE_MCP_MAX_DEPTH",
      meaning:
        "Maximum nesting depth. A server inside a session at this depth only reads. With 0, this server starts no sessions.",
    },
  ),
  toolsets: choices(["agent", "query", "chat", "configure", "all"], "agent", {
    flag: "toolsets",
    variable: "CLAUDE_CODE_MCP_TOOLSETS",
    meaning: "Toolsets to list.",
  }),
  dynamicDescription: toggle({
    flag: "dynamic-description",
    variable: "CLAUDE_CODE_MCP_DYNAMIC_DESCRIPTION",
    meaning:
      "List the last reported tools in claude_code's description. Clients are notified of changes. Each change invalidates the caller's prompt cache.",
  }),
  ...queryFields,
};
