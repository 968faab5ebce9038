import { writeSync, closeSync } from "node:fs";
import { createAcceptor } from "./acceptor.ts";
import { readStatus } from "./daemon-status.ts";
import { listenAs, claimStart } from "./claim-name.ts";
import { assemble, endOn, ownCommands } from "../serve.ts";
import { splitOwnFlags } from "../own-flags.ts";
import type { App } from "../../app/app.ts";
import { hasDriver, isRunning, thisProcess } from "../../app/store.ts";
import { ConfigError } from "../../config/error.ts";
import { constants } from "../../config/constants.ts";
import { automaticSettings, daemonSettings, type ServerSettings } from "../../config/server-settings.ts";
import { startFolder } from "../../config/start-folder.ts";
import type { Config } from "../../config/schema.ts";
import { stateFolder } from "../../config/state-folder.ts";
import { storeTraits } from "../../config/store.ts";
import { readPackage } from "../../config/version.ts";
import { daemonEnvironment } from "../../daemon/daemon-environment.ts";
import { RunningFile, daemonsOnFile } from "../../daemon/running-file.ts";
import { socketFolders } from "../../daemon/socket-folders.ts";
import { daemonName } from "../../daemon/name.ts";
import { Listener } from "../../daemon/listener.ts";
import { boundOwnLog, sweepLogs } from "../../daemon/log-file.ts";
import { checkName, listSockets, removeDeadSockets, type BindOptions } from "../../daemon/socket.ts";
import { shimSettings } from "../../daemon/shim-sockets.ts";
import { readyLine, restartCommand } from "../../daemon/start-daemon.ts";
import { namedDaemon } from "../../proxy/own-server.ts";
import { keyFor } from "../../security/key-file.ts";
import { connectionLimit } from "../../security/descriptors.ts";

/** `daemon run`: serves in the foreground until a signal, `daemon stop` or its idle time ends the process. */

export async function run(argv: string[]): Promise<void> {
  const flags = readRunFlags(argv);
  try {
    reportReady(flags.readyFd, readyLine(await serveClients(flags)));
  } catch (error) {
    reportReady(flags.readyFd, error instanceof Error ? error.message : String(error));
    throw error;
  }
}

/** Writes `line` to the waiting proxy that has started this daemon. */
function reportReady(fd: number | undefined, line: string): void {
  if (fd === undefined) return;
  try {
    writeSync(fd, `${line.replaceAll("\n", " ")}\n`);
    closeSync(fd);
  } catch {
    // The proxy has ended.
  }
}

interface RunFlags {
  /** Name of a named daemon, otherwise `undefined`. */
  readonly name: string | undefined;
  readonly readyFd: number | undefined;
  /** Flags of `serve`. */
  readonly rest: string[];
}

/** Resolves to the name of the daemon. */
async function serveClients({ name: given, readyFd, rest }: RunFlags): Promise<string> {
  const isUnnamed = given === undefined;
  if (isUnnamed) reduceEnvironment(daemonEnvironment(process.env));
  const folder = stateFolder(process.env, process.platform);
  const folders = await socketFolders(folder);
  const settings = readSettings(given, rest);
  const { store } = settings.config;
  const name = given ?? (await daemonName({ stateFolder: folder, store: store && storeTraits(store).text }));
  const { name: product, version } = readPackage();
  const start = { cwd: startFolder, ownCommands: ownCommands(product, process.argv.slice(0, 2)) };
  const log = boundOwnLog(folder, name);
  // Only a daemon started in the background restarts through its shim. Others are restarted by their supervisor.
  const isAutomatic = isUnnamed && log !== undefined;
  const restart = isAutomatic
    ? restartCommand({ name, words: rest, main: process.argv[1] ?? "", stateFolder: folder })
    : undefined;
  const shim = shimSettings({ folders, name, stateFolder: folder }, restart);
  const isByClient = readyFd !== undefined;
  const releaseMutex = isUnnamed && !isByClient ? await claimStart(folders, name, isAutomatic) : undefined;
  const { promise: named, resolve: onNamed } = withResolvers();
  const records = { environmentKey: await keyFor("environment", folder), isApart: isUnnamed };
  const app = await assemble({ settings, argv: rest, start, outlivesClients: true, shim, named, ...records });
  const deaths = new RunningFile(folder, name, await thisProcess());
  const about = { log, userFile: settings.user.path, version };
  let closing: Promise<void> | undefined;
  const listener = new Listener({
    folders,
    name,
    mayDisplace: isUnnamed,
    version,
    maxConnections: constants().maxConnections || connectionLimit(),
    accept: createAcceptor(app, settings, { product, name: given }),
    status: async () => readStatus(app, { ...about, deaths, isDraining: closing !== undefined }),
    onStop: () => end("daemon stop", 0),
    onCount: () => idle.look(),
    log: app.log,
  });
  const close = async (): Promise<void> => {
    await listener.refuseNew();
    await app.close();
    await listener.end();
    await deaths.end();
  };
  process.on("uncaughtException", (error) => deaths.noteCrash(error));
  // Must precede `startListening`: SIGTERM then ends the sessions, too, instead of handing them over as a crash does.
  const end = endOn({ log: app.log, close: async () => (closing ??= close()) }, { handsOver: shim !== undefined });
  // A named daemon is never idle, because its operator ends it.
  const isIdle = () => isUnnamed && listener.clients === 0 && app.atWork() === 0;
  const idle = new IdleWatch(constants().daemonIdleMs, isIdle, () => end("idle", 0));
  const socket = await waitUnlessEnded(
    startListening(app, { folders, name, state: folder, listener, onNamed, isAwaited: isByClient }),
    () => closing,
  );
  releaseMutex?.();
  await deaths.begin(isRunning);
  if (isUnnamed) idle.allow(FIRST_CLIENT_MS);
  idle.look();
  app.log.info("the daemon is ready", { socket, pid: process.pid });
  return name;
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  return { promise: new Promise<void>((fulfil) => (resolve = fulfil)), resolve: () => resolve() };
}

interface ListenStart extends Pick<BindOptions, "folders" | "name"> {
  readonly state: string;
  readonly listener: Listener;
  readonly onNamed: () => void;
  /** True if a proxy waits for the daemon. */
  readonly isAwaited: boolean;
}

/**
 * Loads the modules of the first call, then listens. Removes files of dead daemons and takes over their sessions only
 * afterwards, because before, the name may belong to a living daemon. Resolves to the path of the socket.
 */
async function startListening(
  app: App,
  { folders, isAwaited, listener, name, onNamed, state }: ListenStart,
): Promise<string> {
  // False on the first start with a Node without SQLite. Calls then wait for its installation and report errors.
  const hasStore = await hasDriver();
  if (hasStore) await app.open();
  process.chdir(state);
  const socket = await listenAs(listener, { folders, name, state });
  onNamed();
  await removeDeadSockets(folders);
  const living = [...(await listSockets(folders)), ...(await daemonsOnFile(state, isRunning))];
  await sweepLogs(state, [name, ...living.map((each) => each.name)]);
  if (hasStore && !isAwaited) await app.preload();
  else preloadLater(app);
  return socket;
}

/** Waits for `starting`. If a signal came meanwhile, waits for the orderly end (`closing`) and throws ConfigError. */
async function waitUnlessEnded<T>(starting: Promise<T>, closing: () => Promise<void> | undefined): Promise<T> {
  const [started] = await Promise.allSettled([starting]);
  const ended = closing();
  if (ended) {
    await ended;
    throw new ConfigError("daemon run: a signal interrupted the start. Start it again.");
  }
  if (started.status === "rejected") throw started.reason;
  return started.value;
}

/**
 * Delay of the preload, ms. Loading is a third of the start, and the first answers to a client need none of it. A session
 * started earlier loads the modules itself.
 */
const PRELOAD_MS = 500;

function preloadLater(app: App): void {
  const openAndPreload = async () => app.open().then(async () => app.preload());
  setTimeout(() => void openAndPreload().catch((error: unknown) => app.log.warn(String(error))), PRELOAD_MS);
}

/** Makes an automatic daemon independent of the shell around its start: its clients find an equal daemon, however started. */
function reduceEnvironment(environment: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env)) {
    if (!(name in environment)) Reflect.deleteProperty(process.env, name);
  }
  Object.assign(process.env, environment);
}

/** Reads the settings. Terms given to a named daemon are bounds of its clients. Throws ConfigError. */
function readSettings(name: string | undefined, argv: readonly string[]): ServerSettings {
  const sources = { argv, env: process.env };
  const settings = name === undefined ? automaticSettings(sources) : daemonSettings(sources);
  refuseUnfit(settings.config);
  return settings;
}

function refuseUnfit({ http, store }: Config): void {
  if (http !== undefined) throw new ConfigError("daemon run: --http is served by `serve`. Leave it out here.");
  if (store && !storeTraits(store).isShared) {
    throw new ConfigError("daemon run: sessions in memory (--store memory:) end with their process. Name a file.");
  }
}

/** Time for the proxy that has started a daemon to connect, ms, even on a busy machine. */
const FIRST_CLIENT_MS = 5_000;

/** Calls `onIdle` once `isIdle` has been true for `ms`. */
class IdleWatch {
  readonly #ms: number;
  readonly #isIdle: () => boolean;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #idleSince: number | undefined;

  constructor(ms: number, isIdle: () => boolean, onIdle: () => void) {
    this.#ms = ms;
    this.#isIdle = isIdle;
    this.#onIdle = onIdle;
  }

  /** Starts counting in `ms`, unless there is work before. */
  allow(ms: number): void {
    this.#idleSince = performance.now() + ms;
  }

  look(): void {
    const now = performance.now();
    this.#idleSince = this.#isIdle() ? (this.#idleSince ?? now) : undefined;
    const left = this.#ms - (now - (this.#idleSince ?? now));
    if (left <= 0) return this.#onIdle();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), Math.min(left, MAX_LOOK_MS));
  }
}

/** Interval of checks, ms: the longest delay until the end of the last turn is noticed. */
const MAX_LOOK_MS = 10_000;

/** Separates the flags of `daemon run` from those of `serve`. */
function readRunFlags(argv: readonly string[]): RunFlags {
  const { own, rest } = splitOwnFlags("daemon run", argv, ["--daemon", "--ready-fd"]);
  const readyFd = own.get("--ready-fd");
  if (readyFd !== undefined && !/^\d{1,4}$/.test(readyFd)) {
    throw new ConfigError(`daemon run: --ready-fd is "${readyFd}": must be the number of an open file descriptor.`);
  }
  const name = namedDaemon({ argv, env: process.env });
  const word = own.get("--daemon");
  if (word === "off") throw new ConfigError("daemon run: --daemon off runs no daemon. Leave it out, or give a name.");
  if (word === "") throw new ConfigError("daemon run: --daemon has no name. Add one, or leave it out.");
  try {
    const checked = name === undefined ? undefined : checkName(name);
    return { name: checked, readyFd: readyFd === undefined ? undefined : Number(readyFd), rest };
  } catch (error) {
    throw new ConfigError(`daemon run: --daemon ${error instanceof Error ? error.message : String(error)}.`);
  }
}
