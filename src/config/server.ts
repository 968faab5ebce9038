import { PlanReserve } from "../domain/plan.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";
import { httpFields } from "./http.ts";
import { nodeFields } from "./nodes.ts";
import { profilesField } from "./profiles.ts";
import { choice, count, json, milliseconds, optionalCount, path, usdPerDay } from "./setting.ts";
import { verifyField } from "./verify.ts";

/** Settings of a server, equal for all its sessions and clients. Clients of a daemon cannot give them. */
export const serverFields = {
  maxLive: optionalCount({ least: 1, most: 10_000 }, "what half of the memory holds, at 110 MB each; at least 4", {
    flag: "max-live",
    variable: "CLAUDE_CODE_MCP_MAX_LIVE",
    meaning:
      "Maximum number of Claude Code processes. They are counted across all servers that share a store. When none is free, the one that has been idle longest is closed; when none is idle, new sessions queue.",
  }),
  spares: count(
    { least: 0, most: 100, fallback: 1 },
    {
      flag: "spares",
      variable: "CLAUDE_CODE_MCP_SPARES",
      meaning:
        "Number of pre-started Claude Code processes. A server or daemon keeps this number for each of the last three sets of options, for new sessions with the same options (cwd, permission mode and title may differ). They are started once no session has started and no turn has ended for a second, while half of --max-live is free. They also start your MCP servers, and are stopped when a session waits for a slot, and after --idle-process-ms.",
    },
  ),
  processIsolation: choice(["none", "pid-namespace"], "none", {
    flag: "process-isolation",
    variable: "CLAUDE_CODE_MCP_PROCESS_ISOLATION",
    meaning:
      "Isolation of each Claude Code from other processes. With pid-namespace, it gets its own pid namespace (Linux, as root or with bubblewrap): no process survives it, and its commands cannot see or signal processes outside. The server does not start if that is unavailable.",
  }),
  retentionDays: count(
    { least: 1, most: 36_500, fallback: 30 },
    {
      flag: "retention-days",
      variable: "CLAUDE_CODE_MCP_RETENTION_DAYS",
      meaning: "Delete sessions after this many days without an event.",
    },
  ),
  retentionMegabytes: count(
    { least: 16, most: 1_000_000, fallback: 2_048 },
    {
      flag: "retention-megabytes",
      variable: "CLAUDE_CODE_MCP_RETENTION_MEGABYTES",
      meaning: "Maximum size of the store. Beyond it, the sessions that have been idle longest are deleted.",
    },
  ),
  receipt: choice(["on", "off"], "on", {
    flag: "receipt",
    variable: "CLAUDE_CODE_MCP_RECEIPT",
    meaning:
      "Receipt of each turn, as the server saw the turn. It has changed files, commands and tests. With off, the server does not look at the folders of sessions, and results have no receipt. See docs/receipts.md.",
  }),
  verify: verifyField,
  profiles: profilesField,
  planReserve: json(
    PlanReserve.readonly().optional(),
    {
      flag: "plan-reserve",
      variable: "CLAUDE_CODE_MCP_PLAN_RESERVE",
      meaning:
        "Percent of the plan's windows that agents leave to people. Without the rest fiveHour of the 5-hour window no turn starts. Without the rest sevenDay of the weekly window, running turns are also interrupted at their next tool call. With a reserve, requests paid beyond the plan interrupt a turn, unless allowOverage is true.",
    },
    'a JSON object such as {"fiveHour": 15, "sevenDay": 20, "allowOverage": false}',
  ),
  onLimit: choice(["report", "wait"], "report", {
    flag: "on-limit",
    variable: "CLAUDE_CODE_MCP_ON_LIMIT",
    meaning:
      "Behavior of turns at limits: default of onLimit. Limits are those of the plan, a reserve and a budget. With report, a turn ends with an error and a prompt that may not start is refused. With wait, they wait for the reset. Turns that end with their client always report.",
  }),
  limitWaitMaxMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 21_600_000 },
    {
      flag: "limit-wait-max-ms",
      variable: "CLAUDE_CODE_MCP_LIMIT_WAIT_MAX_MS",
      meaning: "Maximum time that a turn waits at limits. A limit that lasts longer is reported at once.",
    },
  ),
  budgetUsdPerDay: usdPerDay("none", {
    flag: "budget-usd-per-day",
    variable: "CLAUDE_CODE_MCP_BUDGET_USD_PER_DAY",
    meaning:
      "Budget of each principal per day, in USD. The day is that of the server's local time. A turn may spend an eighth of it. Counts Claude Code's estimates, which are not your bill. Holds for the local user and for principals without a budgetUsdPerDay of their own.",
  }),
  eventWebhooks: choice(["off", "public", "any"], "public", {
    flag: "event-webhooks",
    variable: "CLAUDE_CODE_MCP_EVENT_WEBHOOKS",
    meaning:
      "Webhooks that clients may name for events. With public, HTTP principals other than the operator may name https URLs with public addresses. With any, so may the local user, and private and loopback addresses are allowed, with http on loopback. See docs/events.md.",
  }),
  auditLog: path("none", {
    flag: "audit-log",
    variable: "CLAUDE_CODE_MCP_AUDIT_LOG",
    meaning:
      "Append an audit log (JSON Lines) to this file. It records caller, action, session and outcome of every request, including refused ones. Prompts and answers are not recorded.",
  }),
  logLevel: choice(["debug", "info", "warn", "error", "silent"], "info", {
    flag: "log-level",
    variable: "CLAUDE_CODE_MCP_LOG_LEVEL",
    meaning: "Minimum level of log lines. They are written as JSON to stderr, or by a daemon to its log file.",
  }),
  ...nodeFields,
  ...httpFields,
};
