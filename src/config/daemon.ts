import { milliseconds, optionalChoice } from "./setting.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/** Settings of the daemon behind servers on stdio. The proxy reads the first without this table: src/proxy/own-server.ts. */
export const daemonFields = {
  daemon: optionalChoice(["auto", "off"], "auto; off on Windows", {
    flag: "daemon",
    variable: "CLAUDE_CODE_MCP_DAEMON",
    group: "Daemon",
    of: "client",
    meaning:
      "With auto, sessions of clients on stdio run in a daemon, which starts by itself, is shared by clients of the same settings and environment, and goes on when they end. With off, each client has a server of its own, which interrupts its turns when the client ends.",
  }),
  daemonStartMs: milliseconds(
    { least: 0, most: 600_000, fallback: 3_000 },
    {
      flag: "daemon-start-ms",
      variable: "CLAUDE_CODE_MCP_DAEMON_START_MS",
      group: "Daemon",
      of: "client",
      meaning:
        "Wait this long for the daemon when a client begins. If it is not ready by then, this client gets a server of its own, which says so on stderr.",
    },
  ),
  daemonIdleMs: milliseconds(
    { least: 0, most: MAX_TIMER_MS, fallback: 600_000 },
    {
      flag: "daemon-idle-ms",
      variable: "CLAUDE_CODE_MCP_DAEMON_IDLE_MS",
      group: "Daemon",
      of: "server",
      meaning: "End the daemon after this time without clients, running turns, queued prompts and background work.",
    },
  ),
  shim: optionalChoice(["auto", "off"], "auto; off on Windows and over HTTP", {
    flag: "shim",
    variable: "CLAUDE_CODE_MCP_SHIM",
    group: "Daemon",
    of: "server",
    meaning:
      "With auto, a daemon or a server over HTTP starts Claude Code behind a shim, a small process that keeps a running turn when the server is killed or crashes; the next server of the same name goes on with the turn. With off, the turn ends with the server.",
  }),
  keepMs: milliseconds(
    { least: 0, most: MAX_TIMER_MS, fallback: 300_000 },
    {
      flag: "keep-ms",
      variable: "CLAUDE_CODE_MCP_KEEP_MS",
      group: "Daemon",
      of: "server",
      meaning:
        "A shim whose server is gone ends its Claude Code processes after this time, unless the next server comes.",
    },
  ),
};
