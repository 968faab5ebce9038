import type { z } from "zod";
import { PERMISSION_MODES } from "../domain/permission.ts";
import { choice, count, milliseconds, optionalCount, path, text, toggle, words } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Settings of the query toolset, under the variables of seed 003. They are defaults of claude_code_query and of nothing
 * else: what a call gives wins.
 */
export const queryFields = {
  queryEnable: toggle(
    {
      flag: "query-enable",
      variable: "CLAUDE_CODE_ENABLE",
      group: "Query",
      meaning: "Offer claude_code_query when its toolset is listed.",
    },
    true,
  ),
  queryCwd: path("the folder of the server", {
    flag: "query-cwd",
    variable: "CLAUDE_CODE_DEFAULT_CWD",
    group: "Query",
    meaning: "Default of cwd.",
  }),
  queryModel: text("Claude Code's", {
    flag: "query-model",
    variable: "CLAUDE_CODE_DEFAULT_MODEL",
    group: "Query",
    meaning: "Default of model.",
  }),
  queryPermissionMode: choice(PERMISSION_MODES, "bypassPermissions", {
    flag: "query-permission-mode",
    variable: "CLAUDE_CODE_DEFAULT_PERMISSION_MODE",
    group: "Query",
    meaning:
      "Default of permissionMode. bypassPermissions becomes dontAsk unless --allow-bypass is set; the answer then says so.",
  }),
  queryMaxTurns: optionalCount({ least: 1, most: 100_000 }, "no limit", {
    flag: "query-max-turns",
    variable: "CLAUDE_CODE_MAX_TURNS",
    group: "Query",
    meaning: "Default of maxTurns.",
  }),
  queryMaxMessages: count(
    { least: 1, most: 10_000, fallback: 100 },
    {
      flag: "query-max-messages",
      variable: "CLAUDE_CODE_MAX_MESSAGES",
      group: "Query",
      meaning: "Default of maxMessages: the number of messages in an answer, counted from the last.",
    },
  ),
  queryIncludeSystemMessages: toggle(
    {
      flag: "query-include-system-messages",
      variable: "CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES",
      group: "Query",
      meaning: "Default of includeSystemMessages.",
    },
    true,
  ),
  queryAllowedTools: words("none", {
    flag: "query-allowed-tools",
    variable: "CLAUDE_CODE_ALLOWED_TOOLS",
    group: "Query",
    meaning: "Default of allowedTools.",
  }),
  queryMaxExecutionMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 300_000 },
    {
      flag: "query-max-execution-ms",
      variable: "CLAUDE_CODE_MAX_EXECUTION_TIME",
      group: "Query",
      meaning: "Maximum duration of a query. Its answer then contains the messages so far, and the session continues.",
    },
  ),
  queryMaxBytes: count(
    { least: 16_384, most: 33_554_432, fallback: 262_144 },
    {
      flag: "query-max-bytes",
      variable: "CLAUDE_CODE_MCP_QUERY_MAX_BYTES",
      group: "Query",
      meaning: "Maximum size of an answer of claude_code_query, in bytes of JSON.",
    },
  ),
};

type QueryConfig = z.output<z.ZodObject<typeof queryFields>>;

/** The same under the names that the toolset has for them. */
export function querySettings(config: QueryConfig) {
  return {
    enabled: config.queryEnable,
    cwd: config.queryCwd,
    model: config.queryModel,
    permissionMode: config.queryPermissionMode,
    maxTurns: config.queryMaxTurns,
    maxMessages: config.queryMaxMessages,
    includeSystemMessages: config.queryIncludeSystemMessages,
    allowedTools: config.queryAllowedTools,
    maxExecutionMs: config.queryMaxExecutionMs,
    maxBytes: config.queryMaxBytes,
  };
}
