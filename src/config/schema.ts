import { z } from "zod";
import { approverFields } from "./approvals/approver-fields.ts";
import { approvalFields, sandboxFields } from "./approvals/settings.ts";
import { claudeCodeFields } from "./claude-code.ts";
import { daemonFields } from "./daemon.ts";
import { httpFields } from "./http.ts";
import { queryFields } from "./query.ts";
import { unattendedFields } from "./unattended.ts";
import {
  choice,
  choices,
  count,
  directories,
  milliseconds,
  optionalMilliseconds,
  path,
  settingOf,
  storeLocation,
  toggle,
} from "./setting.ts";
import type { Setting } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Every setting of the server, once: what a flag, a variable and the configuration file accept, the help text and
 * docs/configuration.md are all read off this table. A setting stands here only when it has an effect.
 */

const sessionFields = {
  maxWaitMs: optionalMilliseconds({ least: 1_000, most: 3_600_000 }, "45000; 1800000 where the client is Claude Code", {
    flag: "max-wait-ms",
    variable: "CLAUDE_CODE_MCP_MAX_WAIT_MS",
    group: "Time",
    of: "term",
    meaning: "Maximum time that a tool call may block, for every client.",
  }),
  turnMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 14_400_000 },
    {
      flag: "turn-max-ms",
      variable: "CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS",
      group: "Time",
      of: "term",
      meaning:
        "Maximum duration of a turn, which then ends with reason time_limit. Time spent waiting for an approval does not count.",
    },
  ),
  inactivityMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "inactivity-ms",
      variable: "CLAUDE_CODE_MCP_INACTIVITY_MS",
      group: "Time",
      of: "term",
      meaning:
        "End a turn with reason inactivity after this long without a message from Claude Code. Running tools send one every 30 s, text counts when it is complete, and time spent waiting for an approval does not count.",
    },
  ),
  sessionInitTimeoutMs: milliseconds(
    { least: 100, most: 600_000, fallback: 10_000 },
    {
      flag: "session-init-timeout-ms",
      variable: "CLAUDE_CODE_MCP_SESSION_INIT_TIMEOUT_MS",
      group: "Time",
      of: "term",
      meaning:
        "Time limit of a start of Claude Code, its SessionStart hooks and MCP servers included, for sessions without a sessionInitTimeoutMs of their own.",
    },
  ),
  idleProcessMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "idle-process-ms",
      variable: "CLAUDE_CODE_MCP_SESSION_TTL_MS",
      group: "Time",
      of: "term",
      meaning:
        "Close the process of a session that has been idle for this long. The session itself stays and accepts replies.",
    },
  ),
  permissionTimeoutMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 60_000 },
    {
      flag: "permission-timeout-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_TIMEOUT_MS",
      group: "Permissions",
      of: "term",
      meaning:
        "Time that the calling model has to answer a request after it has seen it. The console has at least 600000 (set with --approvals console:<ms>); after the last approver the request is denied.",
    },
  ),
  permissionMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 1_800_000 },
    {
      flag: "permission-max-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_MAX_MS",
      group: "Permissions",
      of: "term",
      meaning:
        "Deny a request that no approver has seen after this long. With a daemon this time begins when it is first shown.",
    },
  ),
  allowBypass: toggle({
    flag: "allow-bypass",
    variable: "CLAUDE_CODE_MCP_ALLOW_BYPASS",
    group: "Permissions",
    of: "term",
    meaning: "Allow callers to use permission mode bypassPermissions, in which tools run without approval.",
  }),
  ...approvalFields,
  ...sandboxFields,
  allowDiskResume: toggle({
    flag: "allow-disk-resume",
    variable: "CLAUDE_CODE_MCP_ALLOW_DISK_RESUME",
    group: "Permissions",
    of: "term",
    meaning:
      "Allow replies to sessions that exist only in Claude Code's transcripts on disk. If CLAUDE_CODE_MCP_RESUME_SECRET is set in the environment, a resumeToken is required.",
  }),
  allowSensitiveSessionDetails: toggle({
    flag: "allow-sensitive-session-details",
    variable: "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS",
    group: "Permissions",
    of: "term",
    meaning:
      "Allow callers to see the folders, prompts, titles and options of sessions (includeSensitive), and to filter by them.",
  }),
  allowDirs: directories(
    "none (anywhere)",
    {
      flag: "allow-dir",
      variable: "CLAUDE_CODE_MCP_ALLOW_DIRS",
      group: "Directories",
      of: "term",
      meaning:
        'Restrict sessions to these folders and those inside them, judged by real path (cwd, additionalDirectories, attachments, debugFile, sessions from disk). Over HTTP, users other than the operator need a list: this one, or allowDirs in principals ("any" allows every folder).',
    },
    true,
  ),
  trustDirs: directories("none", {
    flag: "trust-dir",
    variable: "CLAUDE_CODE_MCP_TRUST_DIRS",
    group: "Directories",
    of: "term",
    meaning:
      "Trust these folders and those inside them: run project settings, hooks and .mcp.json, and apply allow rules of .claude/settings.json. Folders that Claude Code itself has recorded as trusted are trusted too.",
  }),
  ...claudeCodeFields,
  ...daemonFields,
  ...unattendedFields,
  store: storeLocation("a file in your state folder", {
    flag: "store",
    variable: "CLAUDE_CODE_MCP_STORE",
    group: "Store",
    of: "client",
    meaning: "File in which sessions are kept; memory: keeps them only while the server runs.",
  }),
  retentionDays: count(
    { least: 1, most: 36_500, fallback: 30 },
    {
      flag: "retention-days",
      variable: "CLAUDE_CODE_MCP_RETENTION_DAYS",
      group: "Store",
      of: "server",
      meaning: "Delete sessions from the store after this many days without an event.",
    },
  ),
  retentionMegabytes: count(
    { least: 16, most: 1_000_000, fallback: 2_048 },
    {
      flag: "retention-megabytes",
      variable: "CLAUDE_CODE_MCP_RETENTION_MEGABYTES",
      group: "Store",
      of: "server",
      meaning: "Maximum size of the store. Beyond it, the sessions that have been idle longest are deleted.",
    },
  ),
  cleanupIntervalMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 60_000 },
    {
      flag: "cleanup-interval-ms",
      variable: "CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS",
      group: "Store",
      of: "server",
      meaning: "Interval between searches for expired sessions and for processes left by dead servers.",
    },
  ),
  ...queryFields,
  ...httpFields,
};

const serverFields = {
  toolsets: choices(["agent", "query", "chat", "configure", "all"], "agent", {
    flag: "toolsets",
    variable: "CLAUDE_CODE_MCP_TOOLSETS",
    group: "Server",
    of: "term",
    meaning: "Toolsets to list.",
  }),
  tasks: choice(["auto", "off"], "auto", {
    flag: "tasks",
    variable: "CLAUDE_CODE_MCP_TASKS",
    group: "Server",
    of: "term",
    meaning:
      "Return the turns started by claude_code and claude_code_reply as tasks, to clients that support the Tasks extension of MCP.",
  }),
  dynamicDescription: toggle({
    flag: "dynamic-description",
    variable: "CLAUDE_CODE_MCP_DYNAMIC_DESCRIPTION",
    group: "Server",
    of: "term",
    meaning:
      "List the tools that Claude Code last reported in the description of claude_code, and notify clients of changes. Each change invalidates the caller's prompt cache.",
  }),
  auditLog: path("none", {
    flag: "audit-log",
    variable: "CLAUDE_CODE_MCP_AUDIT_LOG",
    group: "Server",
    of: "server",
    meaning:
      "Append an audit log (JSON Lines) to this file: caller, action, session and outcome of every request, including refused ones. Prompts and answers are not recorded.",
  }),
  logLevel: choice(["debug", "info", "warn", "error", "silent"], "info", {
    flag: "log-level",
    variable: "CLAUDE_CODE_MCP_LOG_LEVEL",
    group: "Server",
    of: "server",
    meaning: "Minimum level of log lines, written as JSON to stderr, or by a daemon to its log file.",
  }),
};

/** Of their own settings approvers know alone: they are checked here, and read where the approver is. */
const fields: typeof sessionFields & typeof serverFields = { ...sessionFields, ...approverFields, ...serverFields };

/** The settings as the program uses them: checked, complete, frozen. Every `...Ms` is in ms, every path absolute. */
export const Config = z.strictObject(fields).readonly();
export type Config = z.output<typeof Config>;

/** Where the file is cannot stand in the file. */
export const CONFIG_FILE: Setting = {
  key: "config",
  inFile: false,
  flag: "config",
  variable: "CLAUDE_CODE_MCP_CONFIG",
  group: "Server",
  of: "client",
  reading: "path",
  placeholder: "<path>",
  allowed: "a path",
  fallback: "none",
  meaning: "JSON file with settings.",
};

/** All settings, in the order of the table. */
export const SETTINGS: readonly Setting[] = [
  ...Object.entries(fields).map(([key, schema]) => settingOf(key, schema)),
  CONFIG_FILE,
];
