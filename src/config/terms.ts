import { approvalFields, sandboxFields } from "./approvals/settings.ts";
import { queryFields } from "./query.ts";
import { choice, choices, count, directories, milliseconds, optionalMilliseconds, path, toggle } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/** Terms of one connection: clients of a server may differ in them. */
export const termFields = {
  maxWaitMs: optionalMilliseconds({ least: 1_000, most: 3_600_000 }, "45000; 1800000 where the client is Claude Code", {
    flag: "max-wait-ms",
    variable: "CLAUDE_CODE_MCP_MAX_WAIT_MS",
    group: "Time",
    meaning: "Maximum time that a tool call may block, for every client.",
  }),
  turnMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 14_400_000 },
    {
      flag: "turn-max-ms",
      variable: "CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS",
      group: "Time",
      meaning:
        "Maximum duration of a turn, which then ends with reason time_limit. Time spent waiting for an approval does not count.",
    },
  ),
  idleProcessMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "idle-process-ms",
      variable: "CLAUDE_CODE_MCP_SESSION_TTL_MS",
      group: "Time",
      meaning:
        "Close the process of a session that has been idle for this long. The session itself stays and accepts replies.",
    },
  ),
  unattended: choice(["wait", "deny"], "wait", {
    flag: "unattended",
    variable: "CLAUDE_CODE_MCP_UNATTENDED",
    group: "Daemon",
    meaning:
      "With a daemon: what becomes of a permission request while no client is connected that could be shown it. wait keeps it for the next client, deny denies it at once.",
  }),
  unattendedMaxUsd: count(
    { least: 1, most: 1_000_000, fallback: 10 },
    {
      flag: "unattended-max-usd",
      variable: "CLAUDE_CODE_MCP_UNATTENDED_MAX_USD",
      group: "Daemon",
      meaning: "The same for the cost of an unattended session, in whole USD.",
    },
  ),
  permissionMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "permission-max-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_MAX_MS",
      group: "Permissions",
      meaning:
        "Deny a request that no approver has seen after this long. With a daemon this time begins when it is first shown.",
    },
  ),
  allowBypass: toggle({
    flag: "allow-bypass",
    variable: "CLAUDE_CODE_MCP_ALLOW_BYPASS",
    group: "Permissions",
    meaning: "Allow callers to use permission mode bypassPermissions, in which tools run without approval.",
  }),
  ...approvalFields,
  ...sandboxFields,
  allowDiskResume: toggle({
    flag: "allow-disk-resume",
    variable: "CLAUDE_CODE_MCP_ALLOW_DISK_RESUME",
    group: "Permissions",
    meaning:
      "Allow replies to sessions that exist only in Claude Code's transcripts on disk. If CLAUDE_CODE_MCP_RESUME_SECRET is set in the environment, a resumeToken is required.",
  }),
  allowSensitiveSessionDetails: toggle({
    flag: "allow-sensitive-session-details",
    variable: "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS",
    group: "Permissions",
    meaning:
      "Allow callers to see the folders, prompts, titles and options of sessions (includeSensitive), and to filter by them.",
  }),
  allowDirs: directories(
    "none (anywhere)",
    {
      flag: "allow-dir",
      variable: "CLAUDE_CODE_MCP_ALLOW_DIRS",
      group: "Directories",
      meaning:
        'Restrict sessions to these folders and those inside them, judged by real path (cwd, additionalDirectories, attachments, debugFile, sessions from disk). Over HTTP, users other than the operator need a list: this one, or allowDirs in principals ("any" allows every folder).',
    },
    true,
  ),
  trustDirs: directories("none", {
    flag: "trust-dir",
    variable: "CLAUDE_CODE_MCP_TRUST_DIRS",
    group: "Directories",
    meaning:
      "Trust these folders and those inside them: run project settings, hooks and .mcp.json, and apply allow rules of .claude/settings.json. Folders that Claude Code itself has recorded as trusted are trusted too.",
  }),
  claudePath: path("the Agent SDK's, else the first usable one of PATH and of its installers", {
    flag: "claude-path",
    variable: "CLAUDE_CODE_MCP_CLAUDE_PATH",
    group: "Claude Code",
    meaning: "Path of the Claude Code executable. It must answer --version and be new enough (docs/installation.md).",
  }),
  maxDepth: count(
    { least: 0, most: 10, fallback: 1 },
    {
      flag: "max-depth",
      variable: "CLAUDE_CODE_MCP_MAX_DEPTH",
      group: "Claude Code",
      meaning:
        "Maximum nesting depth: a server inside a session at this depth only reads. With 0, this server starts no sessions.",
    },
  ),
  toolsets: choices(["agent", "query", "chat", "configure", "all"], "agent", {
    flag: "toolsets",
    variable: "CLAUDE_CODE_MCP_TOOLSETS",
    group: "Server",
    meaning: "Toolsets to list.",
  }),
  dynamicDescription: toggle({
    flag: "dynamic-description",
    variable: "CLAUDE_CODE_MCP_DYNAMIC_DESCRIPTION",
    group: "Server",
    meaning:
      "List the tools that Claude Code last reported in the description of claude_code, and notify clients of changes. Each change invalidates the caller's prompt cache.",
  }),
  ...queryFields,
};
