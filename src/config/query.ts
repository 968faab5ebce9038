import { z } from "zod";
import { PERMISSION_MODES } from "../domain/permission.ts";
import {
  choice,
  count,
  json,
  milliseconds,
  optionalCount,
  path,
  settingOf,
  text,
  toggle,
  words,
  type Setting,
} from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Settings of the query toolset: the keys of `query`. All but `maxBytes` are also read from the variable of an older server
 * (`CLAUDE_CODE_MAX_TURNS`). Keys that `claude_code_query` has as arguments are only defaults: arguments win.
 */

const FLAG = "query";
const VARIABLE = "CLAUDE_CODE_MCP_QUERY";

const fields = {
  enabled: toggle(
    {
      flag: FLAG,
      variable: "CLAUDE_CODE_ENABLE",
      meaning: "Offer claude_code_query when its toolset is listed.",
    },
    true,
  ),
  cwd: path("the folder of the server", {
    flag: FLAG,
    variable: "CLAUDE_CODE_DEFAULT_CWD",
    meaning: "Default of cwd: a folder that exists at the start.",
  }),
  model: text("Claude Code's", {
    flag: FLAG,
    variable: "CLAUDE_CODE_DEFAULT_MODEL",
    meaning: "Default of model.",
  }),
  permissionMode: choice(PERMISSION_MODES, "bypassPermissions", {
    flag: FLAG,
    variable: "CLAUDE_CODE_DEFAULT_PERMISSION_MODE",
    meaning:
      "Default of permissionMode. bypassPermissions becomes dontAsk unless --allow-bypass is set; the answer then says so.",
  }),
  maxTurns: optionalCount({ least: 1, most: 100_000 }, "no limit", {
    flag: FLAG,
    variable: "CLAUDE_CODE_MAX_TURNS",
    meaning: "Default of maxTurns.",
  }),
  maxMessages: count(
    { least: 1, most: 10_000, fallback: 100 },
    {
      flag: FLAG,
      variable: "CLAUDE_CODE_MAX_MESSAGES",
      meaning: "Default of maxMessages: the number of messages in an answer, counted from the last.",
    },
  ),
  includeSystemMessages: toggle(
    {
      flag: FLAG,
      variable: "CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES",
      meaning: "Default of includeSystemMessages.",
    },
    true,
  ),
  allowedTools: words("none", {
    flag: FLAG,
    variable: "CLAUDE_CODE_ALLOWED_TOOLS",
    meaning: "Default of allowedTools.",
  }),
  maxExecutionMs: milliseconds(
    { least: 1_000, most: MAX_TIMER_MS, fallback: 300_000 },
    {
      flag: FLAG,
      variable: "CLAUDE_CODE_MAX_EXECUTION_TIME",
      meaning: "Maximum duration of a query. Its answer then contains the messages so far, and the session continues.",
    },
  ),
  maxBytes: count(
    { least: 16_384, most: 33_554_432, fallback: 262_144 },
    {
      flag: FLAG,
      variable: VARIABLE,
      meaning: "Maximum size of an answer of claude_code_query, in bytes of JSON.",
    },
  ),
};

export const queryFields = {
  query: json(z.strictObject(fields).readonly().prefault({}), {
    flag: FLAG,
    variable: VARIABLE,
    meaning: `Defaults and limits of claude_code_query. Keys: ${Object.keys(fields).join(", ")}; see docs/toolsets.md.`,
  }),
};

/** The keys as settings of their own, such as `query.model`. */
export const QUERY_KEYS: readonly Setting[] = Object.entries(fields).map(([key, schema]) =>
  settingOf(`${FLAG}.${key}`, "term", schema),
);

/** Keys that have a variable of their own. */
export const QUERY_VARIABLES = QUERY_KEYS.filter(({ variable }) => variable !== VARIABLE);
