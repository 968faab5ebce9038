import { httpFields } from "./http.ts";
import { choice, count, milliseconds, optionalChoice, optionalCount, path } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/** Settings of a server: the same for all its sessions and clients, so that no client of a daemon gives them. */
export const serverFields = {
  maxLive: optionalCount({ least: 1, most: 10_000 }, "what half of the memory holds, at 110 MB each; at least 4", {
    flag: "max-live",
    variable: "CLAUDE_CODE_MCP_MAX_LIVE",
    group: "Claude Code",
    meaning:
      "Maximum number of Claude Code processes, across all servers that share a store. When none is free, the one that has been idle longest is closed; when none is idle, new sessions queue.",
  }),
  maxBackground: optionalCount({ least: 0, most: 10_000 }, "half of --max-live", {
    flag: "max-background",
    variable: "CLAUDE_CODE_MCP_MAX_BACKGROUND",
    group: "Claude Code",
    meaning:
      "Maximum number of these processes that background work alone may keep while sessions queue. Beyond it, the one that has been quiet longest is closed, and its session reports that.",
  }),
  spares: count(
    { least: 0, most: 100, fallback: 1 },
    {
      flag: "spares",
      variable: "CLAUDE_CODE_MCP_SPARES",
      group: "Claude Code",
      meaning:
        "Number of pre-started Claude Code processes that a server or daemon keeps for new sessions with the same options as a former one (cwd, permission mode and title may differ), for each of the last three sets of options. They are started once no session has started and no turn has ended for a second, while half of --max-live is free. They also start your MCP servers; they are stopped when a session waits for a slot, and after --idle-process-ms.",
    },
  ),
  reaper: choice(["auto", "always"], "auto", {
    flag: "reaper",
    variable: "CLAUDE_CODE_MCP_REAPER",
    group: "Claude Code",
    meaning:
      "How Claude Code is ended if the server dies. auto uses the kernel (setpriv, where available) and a small reaper process; always uses the reaper process alone.",
  }),
  processIsolation: choice(["none", "pid-namespace"], "none", {
    flag: "process-isolation",
    variable: "CLAUDE_CODE_MCP_PROCESS_ISOLATION",
    group: "Claude Code",
    meaning:
      "With pid-namespace, each Claude Code gets its own pid namespace (Linux, as root or with bubblewrap): no process survives it, and its commands cannot see or signal processes outside. The server does not start if that is unavailable.",
  }),
  shim: optionalChoice(["auto", "off"], "auto; off on Windows and over HTTP", {
    flag: "shim",
    variable: "CLAUDE_CODE_MCP_SHIM",
    group: "Daemon",
    meaning:
      "With auto, a daemon or a server over HTTP starts Claude Code behind a shim, a small process that keeps a running turn when the server is killed or crashes; the next server of the same name goes on with the turn. With off, the turn ends with the server.",
  }),
  keepMs: milliseconds(
    { least: 0, most: MAX_TIMER_MS, fallback: 300_000 },
    {
      flag: "keep-ms",
      variable: "CLAUDE_CODE_MCP_KEEP_MS",
      group: "Daemon",
      meaning:
        "A shim whose server is gone ends its Claude Code processes after this time, unless the next server comes.",
    },
  ),
  daemonIdleMs: milliseconds(
    { least: 0, most: MAX_TIMER_MS, fallback: 600_000 },
    {
      flag: "daemon-idle-ms",
      variable: "CLAUDE_CODE_MCP_DAEMON_IDLE_MS",
      group: "Daemon",
      meaning: "End the daemon after this time without clients, running turns, queued prompts and background work.",
    },
  ),
  retentionDays: count(
    { least: 1, most: 36_500, fallback: 30 },
    {
      flag: "retention-days",
      variable: "CLAUDE_CODE_MCP_RETENTION_DAYS",
      group: "Store",
      meaning: "Delete sessions from the store after this many days without an event.",
    },
  ),
  retentionMegabytes: count(
    { least: 16, most: 1_000_000, fallback: 2_048 },
    {
      flag: "retention-megabytes",
      variable: "CLAUDE_CODE_MCP_RETENTION_MEGABYTES",
      group: "Store",
      meaning: "Maximum size of the store. Beyond it, the sessions that have been idle longest are deleted.",
    },
  ),
  cleanupIntervalMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 60_000 },
    {
      flag: "cleanup-interval-ms",
      variable: "CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS",
      group: "Store",
      meaning: "Interval between searches for expired sessions and for processes left by dead servers.",
    },
  ),
  auditLog: path("none", {
    flag: "audit-log",
    variable: "CLAUDE_CODE_MCP_AUDIT_LOG",
    group: "Server",
    meaning:
      "Append an audit log (JSON Lines) to this file: caller, action, session and outcome of every request, including refused ones. Prompts and answers are not recorded.",
  }),
  logLevel: choice(["debug", "info", "warn", "error", "silent"], "info", {
    flag: "log-level",
    variable: "CLAUDE_CODE_MCP_LOG_LEVEL",
    group: "Server",
    meaning: "Minimum level of log lines, written as JSON to stderr, or by a daemon to its log file.",
  }),
  ...httpFields,
};
