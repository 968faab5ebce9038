import { z } from "zod";
import { approverFields } from "./approvals/approvers.ts";
import { approvalFields } from "./approvals/settings.ts";
import { fenceFields } from "./fence.ts";
import { httpFields } from "./http.ts";
import { queryFields } from "./query.ts";
import {
  choice,
  choices,
  count,
  directories,
  LONGEST_MS,
  milliseconds,
  optionalCount,
  optionalMilliseconds,
  path,
  settingOf,
  storeLocation,
  toggle,
} from "./setting.ts";
import type { Setting } from "./setting.ts";

/**
 * Every setting of the server, once: what a flag, a variable and the configuration file accept, the help text and
 * docs/configuration.md are all read off this table. A setting stands here only when it has an effect.
 */

const sessionFields = {
  maxWaitMs: optionalMilliseconds({ least: 1_000, most: 3_600_000 }, "45000; 1800000 where the client is Claude Code", {
    flag: "max-wait-ms",
    variable: "CLAUDE_CODE_MCP_MAX_WAIT_MS",
    group: "Time",
    meaning: "The longest that a waiting tool call may block. What is given here holds for every client.",
  }),
  turnMaxMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 14_400_000 },
    {
      flag: "turn-max-ms",
      variable: "CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS",
      group: "Time",
      meaning:
        "A turn that has run for this long is ended with reason time_limit; time spent waiting for a decision is not counted.",
    },
  ),
  inactivityMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 1_800_000 },
    {
      flag: "inactivity-ms",
      variable: "CLAUDE_CODE_MCP_INACTIVITY_MS",
      group: "Time",
      meaning:
        "A turn without a sign of life from Claude Code for this long is ended with reason inactivity; time spent waiting for a decision is not counted. A running tool gives a sign every 30 s, a text only when it is whole.",
    },
  ),
  idleProcessMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 1_800_000 },
    {
      flag: "idle-process-ms",
      variable: "CLAUDE_CODE_MCP_SESSION_TTL_MS",
      group: "Time",
      meaning: "The process of an idle session is closed after this; the session stays and can be replied to.",
    },
  ),
  permissionTimeoutMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 60_000 },
    {
      flag: "permission-timeout-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_TIMEOUT_MS",
      group: "Permissions",
      meaning:
        "How long a request is with the calling model once it was shown to it, and with the console, which has at least 600000; --approvals console:<ms> sets the console's own. When all of --approvals have had their time, it is denied.",
    },
  ),
  permissionMaxMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 1_800_000 },
    {
      flag: "permission-max-ms",
      variable: "CLAUDE_CODE_MCP_PERMISSION_MAX_MS",
      group: "Permissions",
      meaning: "A request that nobody has seen is denied after this.",
    },
  ),
  allowBypass: toggle({
    flag: "allow-bypass",
    variable: "CLAUDE_CODE_MCP_ALLOW_BYPASS",
    group: "Permissions",
    meaning: "Callers may use permission mode bypassPermissions, in which tools run without asking.",
  }),
  ...approvalFields,
  ...fenceFields,
  allowDiskResume: toggle({
    flag: "allow-disk-resume",
    variable: "CLAUDE_CODE_MCP_ALLOW_DISK_RESUME",
    group: "Permissions",
    meaning:
      "Sessions that Claude Code has on disk and no server of this store has seen can be replied to; with CLAUDE_CODE_MCP_RESUME_SECRET set in the environment a resumeToken is required.",
  }),
  allowSensitiveSessionDetails: toggle({
    flag: "allow-sensitive-session-details",
    variable: "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS",
    group: "Permissions",
    meaning:
      "Callers may see the folders, prompts, titles and options of sessions (includeSensitive), and filter by them.",
  }),
  allowDirs: directories(
    "none (anywhere)",
    {
      flag: "allow-dir",
      variable: "CLAUDE_CODE_MCP_ALLOW_DIRS",
      group: "Directories",
      meaning:
        'Sessions may use only folders inside these (cwd, additionalDirectories, attachments, debugFile, sessions from disk), judged by real path. Over HTTP, users other than the operator need a list: this one, or allowDirs in principals ("any" allows every folder).',
    },
    true,
  ),
  trustDirs: directories("none", {
    flag: "trust-dir",
    variable: "CLAUDE_CODE_MCP_TRUST_DIRS",
    group: "Directories",
    meaning:
      "In these and all directories below them, project settings, hooks and .mcp.json may run, and allow rules of .claude/settings.json count; beside those that Claude Code's own trust record names.",
  }),
  claudePath: path("the Agent SDK's", {
    flag: "claude-path",
    variable: "CLAUDE_CODE_MCP_CLAUDE_PATH",
    group: "Claude Code",
    meaning: "The Claude Code executable.",
  }),
  maxLive: optionalCount({ least: 1, most: 10_000 }, "what half of the memory holds, at 110 MB each; at least 4", {
    flag: "max-live",
    variable: "CLAUDE_CODE_MCP_MAX_LIVE",
    group: "Claude Code",
    meaning:
      "So many Claude Code processes run at a time, over all servers of a store. The one that has been idle longest is closed for the next; where none is idle, a session waits.",
  }),
  maxBackground: optionalCount({ least: 0, most: 10_000 }, "half of --max-live", {
    flag: "max-background",
    variable: "CLAUDE_CODE_MCP_MAX_BACKGROUND",
    group: "Claude Code",
    meaning:
      "So many of these processes may be kept by background work alone while sessions wait for a place; beyond it the one that has been quiet for longest is closed, and its session says so.",
  }),
  spares: count(
    { least: 0, most: 100, fallback: 1 },
    {
      flag: "spares",
      variable: "CLAUDE_CODE_MCP_SPARES",
      group: "Claude Code",
      meaning:
        "So many Claude Codes are kept started, from the end of the first turn on, for the next new session with the same options (its folder, mode and title aside). They start your MCP servers too, and end when half of the places are taken, or after --idle-process-ms.",
    },
  ),
  maxDepth: count(
    { least: 0, most: 10, fallback: 1 },
    {
      flag: "max-depth",
      variable: "CLAUDE_CODE_MCP_MAX_DEPTH",
      group: "Claude Code",
      meaning:
        "How deep servers may nest: inside a session at this depth a server only reads. 0: this server starts no sessions.",
    },
  ),
  reaper: choice(["auto", "always"], "auto", {
    flag: "reaper",
    variable: "CLAUDE_CODE_MCP_REAPER",
    group: "Claude Code",
    meaning:
      "What ends Claude Code when the server dies: auto is the kernel (setpriv, where it exists) and a small reaper process for all that Claude Code has started; always is the reaper process alone.",
  }),
  processIsolation: choice(["none", "pid-namespace"], "none", {
    flag: "process-isolation",
    variable: "CLAUDE_CODE_MCP_PROCESS_ISOLATION",
    group: "Claude Code",
    meaning:
      "With pid-namespace each Claude Code gets a pid namespace of its own (Linux; root, or bubblewrap): the kernel ends whatever is left in it, and its commands see and signal no process outside. The server does not start where that cannot be had.",
  }),
  store: storeLocation("a file in your state folder", {
    flag: "store",
    variable: "CLAUDE_CODE_MCP_STORE",
    group: "Store",
    meaning: "The file that sessions are kept in; memory: keeps them for the life of the server only.",
  }),
  retentionDays: count(
    { least: 1, most: 36_500, fallback: 30 },
    {
      flag: "retention-days",
      variable: "CLAUDE_CODE_MCP_RETENTION_DAYS",
      group: "Store",
      meaning: "Sessions in which nothing has happened for so long are deleted from the store.",
    },
  ),
  retentionMegabytes: count(
    { least: 16, most: 1_000_000, fallback: 2_048 },
    {
      flag: "retention-megabytes",
      variable: "CLAUDE_CODE_MCP_RETENTION_MEGABYTES",
      group: "Store",
      meaning: "When the store is larger, the sessions that have been idle longest are deleted.",
    },
  ),
  cleanupIntervalMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 60_000 },
    {
      flag: "cleanup-interval-ms",
      variable: "CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS",
      group: "Store",
      meaning: "How often old sessions, and what dead servers left, are looked for.",
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
    meaning: "Which tools are listed.",
  }),
  tasks: choice(["auto", "off"], "auto", {
    flag: "tasks",
    variable: "CLAUDE_CODE_MCP_TASKS",
    group: "Server",
    meaning:
      "Clients that know the Tasks extension of the protocol get what claude_code and claude_code_reply begin as a task. With off nobody does.",
  }),
  dynamicDescription: toggle({
    flag: "dynamic-description",
    variable: "CLAUDE_CODE_MCP_DYNAMIC_DESCRIPTION",
    group: "Server",
    meaning:
      "The description of claude_code names the tools that Claude Code last reported, and clients are told when that changes; each change costs a caller its prompt cache.",
  }),
  auditLog: path("none", {
    flag: "audit-log",
    variable: "CLAUDE_CODE_MCP_AUDIT_LOG",
    group: "Server",
    meaning:
      "A file to which who started, prompted, answered, cancelled or switched what, and who was refused, is appended as JSON lines, without what was said.",
  }),
  logLevel: choice(["debug", "info", "warn", "error", "silent"], "info", {
    flag: "log-level",
    variable: "CLAUDE_CODE_MCP_LOG_LEVEL",
    group: "Server",
    meaning: "The least level that is logged, as JSON lines on stderr.",
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
  reading: "path",
  placeholder: "<path>",
  allowed: "a path",
  fallback: "none",
  meaning: "A JSON file with settings.",
};

/** All settings, in the order of the table. */
export const SETTINGS: readonly Setting[] = [
  ...Object.entries(fields).map(([key, schema]) => settingOf(key, schema)),
  CONFIG_FILE,
];
