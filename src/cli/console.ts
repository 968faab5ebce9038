import { fileURLToPath } from "node:url";
import { createApp, isolationOf } from "../app/app.ts";
import { ConfigError } from "../config/error.ts";
import { startFolder } from "../config/start-folder.ts";
import { findConfigFile } from "../config/load.ts";
import { serverSettings } from "../config/server-settings.ts";
import { readPackage } from "../config/version.ts";
import { nestingDepth, refuseNetworkStore, requireSandbox } from "./preflight.ts";
import { splitOwnFlags } from "./own-flags.ts";
import { operationsThrough } from "../daemon/operations.ts";
import { newToken } from "../http/auth/http-token.ts";
import { AutomaticDaemon } from "../proxy/automatic-daemon.ts";
import { SettingsError, whyOf } from "../proxy/failures.ts";
import { NamedDaemon } from "../proxy/named-daemon.ts";
import { namedDaemon, reasonForOwnServer } from "../proxy/own-server.ts";

/** `claude-agents-mcp console`: serves the web console for the user's sessions while the command runs. */

export async function serveConsole(argv: string[]): Promise<void> {
  const { port, rest } = readPort(argv);
  // Logs warnings only, for the person at the terminal. Does not drain, because that person has ended the command and waits.
  const argvOfConsole = ["--log-level", "warn", "--drain-ms", "0", ...rest];
  const { bounds, config } = serverSettings({ argv: argvOfConsole, env: process.env });
  if (config.http !== undefined) {
    throw new ConfigError("console: a server with --http has the console at /console/ already. Leave out --http here.");
  }
  await Promise.all([requireSandbox(config, process.env), refuseNetworkStore(config, process.env)]);
  const { name, version } = readPackage();
  const token = newToken();
  const daemon = await findDaemon(rest);
  const app = createApp({
    operations: daemon && operationsThrough(async () => daemon.connect()),
    config: { ...config, auth: true, console: true },
    bounds,
    configFile: findConfigFile({ argv: rest, env: process.env }),
    environment: process.env,
    depth: nestingDepth(),
    start: { cwd: startFolder, ownCommands: [[name]] },
    info: { name, version },
    isolation: await isolationOf(config),
    local: { address: `127.0.0.1:${port}`, token },
  });
  let isEnding = false;
  const end = () => {
    if (isEnding) return;
    isEnding = true;
    void app.close().finally(() => process.exit(0));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end);
  const { url } = await app.serveHttp();
  process.stdout.write(`${linkText(new URL("/console/", url).href, token, daemon !== undefined)}\n`);
}

/**
 * Resolves to the daemon for the sessions: named, or automatic for the store; `undefined` to run them in this process. Throws
 * ConfigError for an unusable named daemon.
 */
async function findDaemon(argv: readonly string[]): Promise<NamedDaemon | AutomaticDaemon | undefined> {
  const { env, pid, platform } = process;
  if (reasonForOwnServer({ argv, env, pid, platform }) !== undefined) return undefined;
  const name = namedDaemon({ argv, env });
  if (name === undefined) {
    return new AutomaticDaemon(argv, fileURLToPath(new URL("main.js", import.meta.url)), "operations");
  }
  const daemon = new NamedDaemon(name, argv, "operations");
  try {
    (await daemon.connect()).destroy();
    return daemon;
  } catch (error) {
    throw new ConfigError(error instanceof SettingsError ? error.message : daemon.absent(whyOf(error)), error);
  }
}

/** The part after # never leaves the browser: the page signs in with the token and removes it from the address. */
function linkText(url: string, token: string, hasDaemon: boolean): string {
  return [
    "Open the console at this address. It signs you in and is valid until this command ends (Ctrl-C):",
    "",
    `  ${url}#token=${token}`,
    "",
    hasDaemon
      ? "Sessions run in a daemon and go on when this command ends. To stop one, cancel it on its page."
      : "Sessions started there run in this process: they are interrupted when it ends and continue with the next reply.",
  ].join("\n");
}

function readPort(argv: string[]): { port: string; rest: string[] } {
  const { own, rest } = splitOwnFlags("console", argv, ["--port"]);
  const port = own.get("--port") ?? "0";
  if (!/^\d{1,5}$/.test(port) || Number(port) > MAX_PORT) {
    throw new ConfigError("console: --port must be a number from 0 to 65535, such as 7466. 0 takes a free one.");
  }
  return { port, rest };
}

const MAX_PORT = 65_535;
