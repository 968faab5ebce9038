import { MAX_TIMER_MS } from "../domain/timer.ts";
import { choice, count, milliseconds } from "./setting.ts";

/** Settings of sessions that no client attends to. They have an effect in a daemon: other servers end with their clients. */
export const unattendedFields = {
  unattended: choice(["wait", "deny"], "wait", {
    flag: "unattended",
    variable: "CLAUDE_CODE_MCP_UNATTENDED",
    group: "Daemon",
    of: "term",
    meaning:
      "With a daemon: what becomes of a permission request while no client is connected that could be shown it. wait keeps it for the next client, deny denies it at once.",
  }),
  unattendedAfterMs: milliseconds(
    { least: 100, most: MAX_TIMER_MS, fallback: 600_000 },
    {
      flag: "unattended-after-ms",
      variable: "CLAUDE_CODE_MCP_UNATTENDED_AFTER_MS",
      group: "Daemon",
      of: "term",
      meaning:
        "With a daemon: a session is unattended when no client has waited on, read or followed it for this long. Its work is bounded from then on.",
    },
  ),
  unattendedMaxMs: milliseconds(
    { least: 100, most: MAX_TIMER_MS, fallback: 14_400_000 },
    {
      flag: "unattended-max-ms",
      variable: "CLAUDE_CODE_MCP_UNATTENDED_MAX_MS",
      group: "Daemon",
      of: "term",
      meaning:
        "Maximum time that the turns of an unattended session may run; then its queue is held and the turn is interrupted at its next tool call. Time spent waiting for an approval does not count.",
    },
  ),
  unattendedMaxUsd: count(
    { least: 1, most: 1_000_000, fallback: 10 },
    {
      flag: "unattended-max-usd",
      variable: "CLAUDE_CODE_MCP_UNATTENDED_MAX_USD",
      group: "Daemon",
      of: "term",
      meaning: "The same for the cost of an unattended session, in whole USD.",
    },
  ),
};
