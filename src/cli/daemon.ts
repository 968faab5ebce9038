import { once } from "node:events";
import { parseArgs } from "node:util";
import { assemble, endWith, ownCommands } from "./serve.ts";
import type { App, OwnCommand } from "../app/app.ts";
import { ConfigError } from "../config/error.ts";
import { loadConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { readPackage } from "../config/version.ts";
import { Listener, type DaemonClient } from "../daemon/listener.ts";
import { checkName, connectTo, socketFolder, socketNames, socketPath, sweep } from "../daemon/socket.ts";
import { firstLine, objectIn, PROTOCOL, type ClientHello, type DaemonStatus } from "../daemon/wire.ts";
import { ownFlags } from "./own-flags.ts";
import { invalidArgument } from "../domain/error.ts";
import { connectionLimit } from "../security/descriptors.ts";

/** `claude-agents-mcp daemon`: one server for many clients, which outlives them all. */

const VERBS = "run, status and stop";

/** Resolves to the exit code; to undefined when the command goes on by itself. Throws ConfigError. */
export async function daemon([verb = "status", ...rest]: string[]): Promise<number | undefined> {
  switch (verb) {
    case "run":
      await run(rest);
      return undefined;
    case "status":
      return status(rest);
    case "stop":
      return stop(rest);
    default:
      throw new ConfigError(`daemon: there is no verb "${verb}", only ${VERBS}.`);
  }
}

/** As long as no client is connected and nothing goes on, ms. */
const IDLE_MS = 600_000;

/** In the foreground, until a signal ends it, `daemon stop` does, or it was idle for too long. */
async function run(argv: string[]): Promise<void> {
  const { idleMs, name, rest } = readRunFlags(argv);
  const config = loadConfig({ argv: rest, env: process.env });
  refuseUnfit(config);
  const { name: product, version } = readPackage();
  const refuseCwd = () => {
    throw invalidArgument("cwd", "is required here: a daemon has no folder of its own.");
  };
  const start = { cwd: refuseCwd, ownCommands: ownCommands(product, process.argv.slice(0, 2)) };
  const app = await assemble({ config, argv: rest, start, outlivesClients: true });
  const folder = await socketFolder(stateFolder(process.env, process.platform), process.env);
  await sweep(folder);
  await app.preload();
  process.chdir(folder);
  let closing: Promise<void> | undefined;
  const listener = new Listener({
    folder,
    name,
    version,
    maxConnections: config.maxConnections ?? connectionLimit(),
    serve: (client) => serveClient(app, product, client),
    status: async () => Promise.resolve(statusOf(app, { isDraining: closing !== undefined, version })),
    onStop: () => end("daemon stop", 0),
    onCount: () => idle.look(),
    log: app.log,
  });
  const close = async (): Promise<void> => {
    await listener.refuseNew();
    await app.close();
    await listener.end();
  };
  const end = endWith({ log: app.log, close: async () => (closing ??= close()) });
  const idle = new IdleWatch(
    idleMs,
    () => listener.clients === 0 && app.atWork() === 0,
    () => end("idle", 0),
  );
  await listener.listen();
  idle.look();
  app.log.info("the daemon is ready", { socket: socketPath(folder, name), pid: process.pid });
}

function serveClient(app: App, product: string, { hello, onClose, streams }: DaemonClient): { close(): Promise<void> } {
  const { commandLine, cwd } = hello;
  const commands: OwnCommand[] = commandLine.length > 0 ? ownCommands(product, commandLine) : [];
  return app.serveClient({ start: { cwd: () => cwd, ownCommands: commands }, streams, onClose });
}

function refuseUnfit({ http, store }: Config): void {
  if (http !== undefined) throw new ConfigError("daemon run: --http is served by `serve`. Leave it out here.");
  if (store?.kind === "memory") {
    throw new ConfigError("daemon run: sessions in memory (--store memory:) end with their process. Name a file.");
  }
}

const startedAt = new Date(Date.now() - performance.now()).toISOString();

function statusOf(app: App, { isDraining, version }: { isDraining: boolean; version: string }) {
  const state = isDraining ? ("draining" as const) : ("ready" as const);
  return { pid: process.pid, startedAt, version, nodeVersion: process.versions.node, state, sessions: app.atWork() };
}

/** Looks from time to time whether nothing has gone on for long enough. */
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

  look(): void {
    const now = performance.now();
    this.#idleSince = this.#isIdle() ? (this.#idleSince ?? now) : undefined;
    const left = this.#ms - (now - (this.#idleSince ?? now));
    if (left <= 0) return this.#onIdle();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), Math.min(left, MAX_LOOK_MS));
  }
}

/** The end of the last turn is noticed within this time, ms. */
const MAX_LOOK_MS = 10_000;

/** All other flags are those of serve. */
function readRunFlags(argv: readonly string[]): { idleMs: number; name: string; rest: string[] } {
  const { own, rest } = ownFlags(argv, ["--daemon-socket", "--daemon-idle-ms"]);
  const name = own.get("--daemon-socket");
  if (name === undefined) {
    throw new ConfigError("daemon run: --daemon-socket NAME is required: clients find it by that name.");
  }
  const idle = own.get("--daemon-idle-ms") ?? String(IDLE_MS);
  if (!/^\d{1,9}$/.test(idle)) {
    throw new ConfigError(`daemon run: --daemon-idle-ms is "${idle}": must be a number of ms.`);
  }
  try {
    return { idleMs: Number(idle), name: checkName(name), rest };
  } catch (error) {
    throw new ConfigError(`daemon run: --daemon-socket ${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** What a daemon may take to answer, ms. */
const ANSWER_MS = 5_000;

/** Undefined where nothing listens. Rejects when the daemon does not answer. */
async function ask(folder: string, name: string, purpose: ClientHello["purpose"]): Promise<DaemonStatus | undefined> {
  const socket = await connectTo(socketPath(folder, name)).catch(() => undefined);
  if (!socket) return undefined;
  const hello: ClientHello = { protocol: PROTOCOL, purpose, cwd: "/", commandLine: [] };
  try {
    socket.write(`${JSON.stringify(hello)}\n`);
    const about = objectIn(await firstLine(socket, ANSWER_MS));
    if (purpose === "stop") await once(socket.resume(), "close");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program, and only printed
    return about as unknown as DaemonStatus;
  } finally {
    socket.destroy();
  }
}

async function daemonsOf(): Promise<{ folder: string; found: Map<string, DaemonStatus> }> {
  const folder = await socketFolder(stateFolder(process.env, process.platform), process.env);
  const found = new Map<string, DaemonStatus>();
  for (const name of await socketNames(folder)) {
    try {
      const about = await ask(folder, name, "status");
      if (about) found.set(name, about);
    } catch {
      process.stderr.write(`claude-agents-mcp: the daemon "${name}" does not answer.\n`);
    }
  }
  return { folder, found };
}

/** Exit code 1 when there is none. */
async function status(argv: string[]): Promise<number> {
  const { json } = readFlags("status", argv);
  const { found } = await daemonsOf();
  const daemons = [...found].map(([name, about]) => ({ name, ...about }));
  process.stdout.write(
    json ? `${JSON.stringify({ daemons })}\n` : daemons.length === 0 ? "No daemon runs.\n" : daemons.map(line).join(""),
  );
  return daemons.length === 0 ? 1 : 0;
}

function line({
  name,
  pid,
  proxies,
  sessions,
  startedAt: since,
  state,
  version,
}: DaemonStatus & { name: string }): string {
  return `${name}  ${state}, version ${version}, pid ${String(pid)}, since ${since}, ${count(proxies, "client")}, ${count(sessions, "session")} at work\n`;
}

function count(number: number, noun: string): string {
  return `${String(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Drains them and waits for their end. Exit code 1 when there is none. */
async function stop(argv: string[]): Promise<number> {
  const { json, names } = readFlags("stop", argv);
  const { folder, found } = await daemonsOf();
  const unknown = names.find((name) => !found.has(name));
  if (unknown !== undefined)
    throw new ConfigError(`daemon stop: no daemon is named "${unknown}". \`daemon status\` lists them.`);
  const named = [...found].filter(([name]) => names.length === 0 || names.includes(name));
  if (named.length > 0) process.stderr.write(`Waiting for ${count(named.length, "daemon")} to end their turns.\n`);
  await Promise.all(named.map(async ([name]) => ask(folder, name, "stop")));
  const stopped = named.map(([name, { pid }]) => ({ name, pid }));
  process.stdout.write(json ? `${JSON.stringify({ stopped })}\n` : `${count(stopped.length, "daemon")} stopped.\n`);
  return stopped.length === 0 ? 1 : 0;
}

function readFlags(verb: string, argv: string[]): { json: boolean; names: readonly string[] } {
  try {
    const { positionals, values } = parseArgs({
      args: argv,
      options: { json: { type: "boolean" } },
      allowPositionals: verb === "stop",
    });
    return { json: values.json ?? false, names: positionals };
  } catch (error) {
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split(". ");
    throw new ConfigError(`daemon ${verb}: ${problem}. It takes --json${verb === "stop" ? " and names" : ""}.`);
  }
}
