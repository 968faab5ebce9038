import { duplexPair, type Duplex } from "node:stream";
import { createApp, isolationOf, ownTerms, type App, type AppSettings, type OwnCommand } from "../app/app.ts";
import { requireQueryFolder } from "../app/terms.ts";
import { readApproverSecrets } from "../config/approvals/approver-fields.ts";
import { unknownTools } from "../config/approvals/settings.ts";
import { startFolder } from "../config/start-folder.ts";
import { findConfigFile, unknownVariables } from "../config/load.ts";
import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, serverSettings, type ServerSettings } from "../config/server-settings.ts";
import { stateFolder } from "../config/state-folder.ts";
import { storeTraits } from "../config/store.ts";
import { readPackage } from "../config/version.ts";
import {
  checkNodeSettings,
  nestingDepth,
  describeConfinement,
  refuseNetworkStore,
  requireSandbox,
} from "./preflight.ts";

/** Serves an MCP client over stdio until it leaves or a signal ends the server. */
export async function serve(argv: string[]): Promise<void> {
  const settings = serverSettings({ argv, env: process.env });
  const { config } = settings;
  const { name } = readPackage();
  // No client starts an HTTP server, and sessions should not see its arguments.
  const words = config.http === undefined ? process.argv : process.argv.slice(0, 2);
  let whyNone = "";
  const shim = await findShimSettings(config, argv).catch((error: unknown) => void (whyNone = String(error)));
  const start = { cwd: startFolder, ownCommands: ownCommands(name, words) };
  const app = await assemble({ settings, argv, start, shim });
  if (whyNone !== "") app.log.warn("turns end with this server, because it cannot have a shim", { why: whyNone });
  const end = endOn(app, { handsOver: shim !== undefined });
  if (config.http === undefined) {
    process.stdin.once("end", () => void watchReader());
    return app.serveStdio(() => end("the client is gone", 0));
  }
  await app.serveHttp();
}

/** Loaded only at the end. If it fails, the next answer detects a killed client. */
async function watchReader(): Promise<void> {
  const loaded = await import("../proxy/client-end.ts").catch(() => undefined);
  loaded?.exitOnceUnread(process.stdout);
}

/** Returns shim settings, if any: the next server with equal arguments continues the turns of this one. */
async function findShimSettings(config: Config, argv: readonly string[]): Promise<AppSettings["shim"]> {
  if (config.http === undefined || !constants().shim || process.platform === "win32") return undefined;
  // A session in memory ends with its server.
  if (config.store && !storeTraits(config.store).isShared) return undefined;
  const [{ socketFolders }, { daemonName }, { shimSettings }] = await Promise.all([
    import("../daemon/socket-folders.ts"),
    import("../daemon/name.ts"),
    import("../daemon/shim-sockets.ts"),
  ]);
  const folder = stateFolder(process.env, process.platform);
  const folders = await socketFolders(folder);
  const store = config.store && storeTraits(config.store).text;
  const name = await daemonName({ argv, stateFolder: folder, store });
  return shimSettings({ folders, name, stateFolder: folder });
}

/** Rejects with ConfigError for settings that the automatic daemon refuses to a client. */
export async function checkSettings(argv: readonly string[]): Promise<void> {
  const { env } = process;
  const { daemonEnvironment } = await import("../daemon/daemon-environment.ts");
  await prepare(clientSettings(serverSettings({ argv: [], env: daemonEnvironment(env) }), { argv, env }));
}

/**
 * Serves a client if no daemon is available, and ends the process with the client. Resolves to the client's end of the streams.
 */
export async function serveWithoutDaemon(argv: string[], why: string): Promise<Duplex> {
  const settings = serverSettings({ argv, env: process.env });
  const { config } = settings;
  const start = { cwd: startFolder, ownCommands: ownCommands(readPackage().name, process.argv) };
  const app = await assemble({ settings, argv, start, withoutDaemon: why });
  app.log.warn("sessions run in this process and end with it: no daemon is available", { why });
  const end = endOn(app);
  const [theirs, ours] = duplexPair();
  app.serveClient({
    start: ownTerms({ config, environment: process.env, start }),
    streams: { stdin: ours, stdout: ours },
    onClose: () => end("the client is gone", 0),
  });
  return theirs;
}

type AssemblyFields = "environmentKey" | "isApart" | "named" | "outlivesClients" | "shim" | "start" | "withoutDaemon";

interface Assembly extends Pick<AppSettings, AssemblyFields> {
  readonly argv: readonly string[];
  readonly settings: Pick<ServerSettings, "bounds" | "config">;
}

/** Checks everything before a server starts, and returns the results. Throws ConfigError. */
async function prepare(config: Config): Promise<Pick<AppSettings, "approverSecrets" | "isolation">> {
  const { env } = process;
  await Promise.all([requireSandbox(config, env), refuseNetworkStore(config, env), requireQueryFolder(config)]);
  return { isolation: await isolationOf(config), approverSecrets: await readApproverSecrets(config, process.env) };
}

/** Creates the application after all checks. Throws ConfigError. */
export async function assemble({ argv, settings: { bounds, config }, ...given }: Assembly): Promise<App> {
  const prepared = await prepare(config);
  const sharedFolders = await checkNodeSettings(config, { argv, env: process.env });
  const app = createApp({
    ...given,
    ...prepared,
    sharedFolders,
    config,
    bounds,
    configFile: findConfigFile({ argv, env: process.env }),
    environment: process.env,
    depth: nestingDepth(),
    info: readPackage(),
  });
  for (const problem of [...unknownVariables(process.env), ...unknownTools(config)]) app.log.warn(problem);
  app.log[config.sandbox === "off" ? "debug" : "info"](describeConfinement(config), { sandbox: config.sandbox });
  return app;
}

/**
 * Ends the process in order on a signal or an uncaught exception. The returned function does so for other reasons. With
 * `handsOver` an exception ends the process at once: the next server continues its turns.
 */
export function endOn(
  app: Pick<App, "close" | "log">,
  { handsOver = false } = {},
): (reason: string, code: number) => void {
  let isEnding = false;
  const end = (reason: string, code: number) => {
    isEnding = true;
    app.log.debug("ending", { reason });
    void app
      .close()
      .catch((error: unknown) => app.log.error("while ending", { error: String(error) }))
      .finally(() => process.exit(code));
  };
  // Clients often send the next signal soon after the first. No effect: draining has its own limits.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end(signal, 0));
  // Node prints warnings as plain text, but stderr must be JSON lines.
  process.removeAllListeners("warning");
  process.on("warning", (warning) => app.log.debug("warning", { name: warning.name, message: warning.message }));
  process.on("uncaughtException", (error) => {
    app.log.error("uncaught exception", { error: error.stack ?? error.message });
    // An orderly end hands nothing over.
    if (handsOver && !isEnding) process.exit(1);
    end("uncaught exception", 1);
  });
  return end;
}

/** Returns all spellings by which a configuration of Claude Code may start this server. */
export function ownCommands(name: string, argv: readonly string[]): OwnCommand[] {
  const [node = process.execPath, script = name, ...args] = argv;
  return [
    [node, script, ...args],
    ["node", script, ...args],
    [script, ...args],
    [name, ...args],
    ["npx", name, ...args],
    ["npx", "-y", name, ...args],
  ];
}
