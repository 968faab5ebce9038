import { choice, count, optionalCount, path } from "./setting.ts";

/** Settings of the Claude Code processes. */
export const claudeCodeFields = {
  claudePath: path("the Agent SDK's, else the first usable one of PATH and of its installers", {
    flag: "claude-path",
    variable: "CLAUDE_CODE_MCP_CLAUDE_PATH",
    group: "Claude Code",
    of: "term",
    meaning: "Path of the Claude Code executable. It must answer --version and be new enough (docs/installation.md).",
  }),
  maxLive: optionalCount({ least: 1, most: 10_000 }, "what half of the memory holds, at 110 MB each; at least 4", {
    flag: "max-live",
    variable: "CLAUDE_CODE_MCP_MAX_LIVE",
    group: "Claude Code",
    of: "server",
    meaning:
      "Maximum number of Claude Code processes, across all servers that share a store. When none is free, the one that has been idle longest is closed; when none is idle, new sessions queue.",
  }),
  maxBackground: optionalCount({ least: 0, most: 10_000 }, "half of --max-live", {
    flag: "max-background",
    variable: "CLAUDE_CODE_MCP_MAX_BACKGROUND",
    group: "Claude Code",
    of: "server",
    meaning:
      "Maximum number of these processes that background work alone may keep while sessions queue. Beyond it, the one that has been quiet longest is closed, and its session reports that.",
  }),
  spares: count(
    { least: 0, most: 100, fallback: 1 },
    {
      flag: "spares",
      variable: "CLAUDE_CODE_MCP_SPARES",
      group: "Claude Code",
      of: "server",
      meaning:
        "Number of pre-started Claude Code processes that a server or daemon keeps for new sessions with the same options (cwd, permission mode and title may differ), from the end of the first turn on. They also start your MCP servers; they are stopped when half of --max-live is in use or after --idle-process-ms.",
    },
  ),
  maxDepth: count(
    { least: 0, most: 10, fallback: 1 },
    {
      flag: "max-depth",
      variable: "CLAUDE_CODE_MCP_MAX_DEPTH",
      group: "Claude Code",
      of: "term",
      meaning:
        "Maximum nesting depth: a server inside a session at this depth only reads. With 0, this server starts no sessions.",
    },
  ),
  reaper: choice(["auto", "always"], "auto", {
    flag: "reaper",
    variable: "CLAUDE_CODE_MCP_REAPER",
    group: "Claude Code",
    of: "server",
    meaning:
      "How Claude Code is ended if the server dies. auto uses the kernel (setpriv, where available) and a small reaper process; always uses the reaper process alone.",
  }),
  processIsolation: choice(["none", "pid-namespace"], "none", {
    flag: "process-isolation",
    variable: "CLAUDE_CODE_MCP_PROCESS_ISOLATION",
    group: "Claude Code",
    of: "server",
    meaning:
      "With pid-namespace, each Claude Code gets its own pid namespace (Linux, as root or with bubblewrap): no process survives it, and its commands cannot see or signal processes outside. The server does not start if that is unavailable.",
  }),
};
