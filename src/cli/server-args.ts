import { isAbsolute } from "node:path";
import { ConfigError } from "../config/error.ts";
import { loadConfig } from "../config/load.ts";
import { readFlags } from "../config/parse-flags.ts";
import type { Config } from "../config/schema.ts";
import { refuseServerSettings } from "../config/server-settings.ts";
import { userFilePath } from "../config/state-folder.ts";
import { isStorePath } from "../config/store-spelling.ts";
import { checkName } from "../daemon/socket.ts";
import { namedDaemon } from "../proxy/own-server.ts";
import type { Client } from "../install/clients.ts";
import type { Entry } from "../install/format.ts";

/** The flags that a client's entry gives to the server, and the timeout that they need there. */

/** A call of this length can still come back, ms. */
const MARGIN_MS = 30_000;

/** What a call without a limit of its own takes at most where the client is not Claude Code, ms. */
const MAX_WAIT_MS = 45_000;

/** The longest call of the tools that are listed, ms. Throws ConfigError for flags that the server would refuse. */
export function longestCallMs(argv: readonly string[]): number {
  const config = read(argv);
  const lists = (name: Config["toolsets"][number]) => config.toolsets.includes(name) || config.toolsets.includes("all");
  return Math.max(
    config.maxWaitMs ?? MAX_WAIT_MS,
    lists("query") ? config.query.maxExecutionMs : 0,
    lists("chat") ? config.turnMaxMs : 0,
  );
}

function read(argv: readonly string[]): Config {
  const name = namedDaemon({ argv, env: {} });
  if (name !== undefined) {
    try {
      checkName(name);
    } catch (error) {
      throw new ConfigError(`--daemon ${error instanceof Error ? error.message : String(error)}.`, error);
    }
  }
  const config = loadConfig({ argv, env: {} });
  refuseRelative(argv);
  const daemon = config.daemon ?? (process.platform === "win32" ? "off" : "auto");
  if (config.http === undefined) {
    if (daemon !== "off") refuseServerSettings({ argv, env: {} }, userFilePath(process.env));
    return config;
  }
  throw new ConfigError(
    "install: a server over HTTP is started by you, not by the client. docs/http.md says what its entry is.",
  );
}

/** The client starts the server in a folder of its own. */
function refuseRelative(argv: readonly string[]): void {
  for (const { setting, text = "", written } of readFlags(argv)) {
    const isPath = setting.reading === "store" ? isStorePath(text) : ["directories", "path"].includes(setting.reading);
    if (!isPath || isAbsolute(text) || text.startsWith("~")) continue;
    throw new ConfigError(
      `${written} is a relative path, and the client starts the server in another folder. Make it absolute.`,
    );
  }
}

/** The client's own setting, where its default is too short. */
export function timeoutEntry({ timeout }: Client, longestMs: number): Entry {
  if (timeout === undefined || longestMs + MARGIN_MS <= timeout.defaultMs) return {};
  return { [timeout.key]: Math.ceil((longestMs + MARGIN_MS) / timeout.unitMs) };
}

/** Whether the client may give up a call before it returns, and no setting is known that helps. */
export function mayGiveUp({ timeout, unlimited }: Client, longestMs: number): boolean {
  return longestMs > MAX_WAIT_MS && timeout === undefined && unlimited === undefined;
}
