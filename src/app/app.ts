import type { EngineSettings, OverHttp, Running } from "./engine.ts";
import type { HttpParts, HttpServing, LocalHttp } from "./http.ts";
import { connectStore, storeLocation, storeNameOf, thisProcess, type StoreSettings } from "./store.ts";
import type { ShimReport } from "../claude/shim/shims.ts";
import type { Config } from "../config/schema.ts";
import { ConfigError } from "../config/error.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { constants } from "../config/constants.ts";
import { stateFolder } from "../config/state-folder.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import type { Operations } from "../daemon/operations.ts";
import type { Engine } from "../engine/api.ts";
import type { Logger } from "../engine/ports.ts";
import { createAuditLog } from "../log/audit.ts";
import { createLogger } from "../log/logger.ts";
import type { Masker } from "../log/mask.ts";
import { lazy } from "../mcp/lazy.ts";
import type { ServerOptions } from "../mcp/server-options.ts";
import type { ServerFactory } from "../mcp/http.ts";
import { createMcpServer } from "../mcp/server.ts";
import { serveOverStdio, type StdioOptions } from "../mcp/stdio.ts";
import type { Audit } from "../tools/audit.ts";
import { clientOptions, judgesOf, preload } from "./client-options.ts";
import { Connections, type Connection } from "./connections.ts";
import { type RecordSettings, recordsOf } from "./environments.ts";
import { Readiness } from "./readiness.ts";
import type { ClientStart, Terms } from "./terms.ts";

export type { OwnCommand } from "./terms.ts";

export interface AppSettings extends StoreSettings, RecordSettings {
  config: Config;
  bounds?: EngineSettings["bounds"];
  /** How deep this server is nested in sessions of servers like it. */
  depth: number;
  /** How this process was started: what its client on stdio and those over HTTP begin with. */
  start: ClientStart;
  info: { name: string; version: string };
  /** Served to the person at this machine, whatever the configuration says of HTTP. */
  local?: LocalHttp | undefined;
  /** The file that settings were read from. */
  configFile?: string | undefined;
  /** What approvers sign or log in with, by their names. */
  approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
  /** Clients come and go while it runs: running turns may end before it does. */
  outlivesClients?: boolean | undefined;
  /** Why this process serves a client that was to have a daemon. */
  withoutDaemon?: string | undefined;
  /** Where clients of this server leave work to a daemon, which runs what they start. */
  operations?: Operations | undefined;
  /** Who holds the pipes of Claude Codes, so that the next server goes on with them; undefined where they end with this one. */
  shim?: EngineSettings["shim"];
  named?: EngineSettings["named"];
  /** What `isolationOf` has found. */
  isolation?: readonly string[] | undefined;
}

export interface App {
  readonly log: Logger;
  /** Serves one MCP client on stdin and stdout. `onClose` is called when the client is gone. */
  serveStdio(onClose: () => void): void;
  /** Serves one more MCP client, on these streams. */
  serveClient(client: ServedClient): { close(): Promise<void> };
  /** Performs operations that another process of this user leaves to this one, until that process leaves. */
  serveOperations(client: ServedClient & Required<Pick<ServedClient, "streams">>): void;
  /** Serves MCP over HTTP as configured, with our tools unless there is a `factory`. Throws ConfigError. */
  serveHttp(factory?: ServerFactory): Promise<Pick<HttpServing, "url" | "notify">>;
  /** The number of sessions in which something goes on here. */
  atWork(): number;
  /** What this node runs. Starts the engine. */
  report(): Promise<NodeReport>;
  /** Starts the engine and opens its store, as the first call would. */
  open(): Promise<void>;
  /** Loads and starts what the first session would, the Agent SDK included: from then on the files of this program may vanish. */
  preload(): Promise<void>;
  /** Running turns have the drain time to end where clients come and go; then what runs is recorded as interrupted. Safe to call again. */
  close(): Promise<void>;
}

export interface NodeReport {
  readonly nodeId: string;
  /** Claude Code processes, spares included. */
  readonly processes: number;
  /** Sessions in which a turn runs. */
  readonly turns: readonly { readonly sessionId: string; readonly title: string }[];
  /** Those that hold its processes, and why there is none although there should be. */
  readonly shim: { readonly fallback: string | undefined; readonly shims: readonly ShimReport[] };
}

export interface ServedClient extends Pick<StdioOptions, "onClose" | "streams"> {
  readonly start: Terms;
}

/** What gives each Claude Code a pid namespace of its own, as configured; throws ConfigError where that cannot be had. */
export async function isolationOf({ processIsolation }: Config): Promise<readonly string[]> {
  if (processIsolation === "none") return [];
  const { pidNamespace } = await import("../claude/supervise/isolation.ts");
  return pidNamespace().catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    const advice = "Run the server as root, or install bubblewrap and allow user namespaces; or leave the setting out.";
    throw new ConfigError(`--process-isolation pid-namespace is not available here (${why}). ${advice}`, error);
  });
}

/** Those of a client that has this server to itself, and of all that come over HTTP. */
export function ownTerms({ config, environment, start }: Pick<AppSettings, "config" | "environment" | "start">): Terms {
  return { ...start, config, environment, isOwn: true };
}

/** The one assembly. Nothing that a first `initialize` does not need is loaded before the first tool call. */
export function createApp(settings: AppSettings): App {
  const { config, environment } = settings;
  const { environments, masker } = recordsOf(settings);
  const log = createLogger({ level: config.logLevel, masker });
  const connections = new Connections(
    { allowsBypass: config.allowBypass, environments, mayAllow: settings.bounds?.allowBypass !== false },
    log,
  );
  const audit = auditTo(config.auditLog, log, masker);
  const sessions = new Readiness<Running, OverHttp>(async (http, over) => {
    const { startEngine } = await import("./engine.ts");
    const location = storeLocation(settings);
    const backend = await connectStore(location, { log, over, urls: http?.ownUrls });
    const self = { storeName: await storeNameOf(location, backend), process: await thisProcess() };
    const parts = { backend, ...self, http, audit, log, masker, environments, connections };
    const running = await startEngine({ ...settings, runsNothing: settings.operations !== undefined }, parts);
    return withDaemon(running, settings);
  });
  const optionsFor = clientOptions(settings, {
    log,
    audit,
    masker,
    running: async () => sessions.ready(),
    stateFolder: stateFolder(environment, process.platform),
  });
  const serveClient = clientServer(connections, optionsFor);
  const http = new Readiness<HttpServing, ServerFactory>(async (factory) => {
    // Its clients have no lasting connection of their own: together they are one.
    const connection = connections.open(ownTerms(settings));
    const options = optionsFor(connection);
    const serving = await startHttp(settings, {
      connection,
      factory,
      options,
      sessions,
      audit,
      log,
    });
    options.reported?.onChange(() => serving.notify.toolsChanged());
    return serving;
  });
  const close = lazy(async () => {
    // First that which starts sessions: what it has started is there then.
    const serving = await http.end();
    const running = await sessions.end();
    if (serving) await leave(serving, running?.engine, config);
    else if (settings.outlivesClients) await running?.engine.stop(config.drainMs);
    await end(running);
  });
  return {
    log,
    serveStdio: (onClose) => void serveClient({ start: ownTerms(settings), onClose }),
    serveClient,
    serveOperations: (client) => void serveOperations(client, { connections, sessions, log }),
    serveHttp: async (factory) => http.ready(factory),
    ...ofSessions(sessions, environment),
    close,
  };
}

function ofSessions(
  sessions: Pick<Readiness<Running, OverHttp>, "now" | "ready">,
  environment: NodeJS.ProcessEnv,
): Pick<App, "atWork" | "open" | "preload" | "report"> {
  return {
    atWork: () => sessions.now?.engine.atWork() ?? 0,
    report: async () => reportOf(await sessions.ready()),
    // Counting opens the store, and with it the driver.
    open: async () => void (await (await sessions.ready()).store.maintenance.count()),
    preload: async () => loadAll(await sessions.ready(), environment),
  };
}

async function withDaemon(running: Running, { operations }: Pick<AppSettings, "operations">): Promise<Running> {
  if (!operations) return running;
  const { withOperations } = await import("../daemon/operations.ts");
  return { ...running, engine: withOperations(running.engine, operations) };
}

interface OperationsParts {
  readonly connections: Connections;
  readonly sessions: Pick<Readiness<Running, OverHttp>, "ready">;
  readonly log: Logger;
}

async function serveOperations(client: Parameters<App["serveOperations"]>[0], parts: OperationsParts): Promise<void> {
  const { connections, log, sessions } = parts;
  const { onClose, start, streams } = client;
  const connection = connections.open(start);
  const onFault = (error: unknown) =>
    log.error("an operation for another process failed", { error: String(error), connection: connection.id });
  try {
    const [{ engine, termsOf }, { perform }] = await Promise.all([sessions.ready(), import("../daemon/operations.ts")]);
    const own = engine.forConnection(termsOf(connection));
    await perform(streams, own, onFault);
  } catch (error) {
    onFault(error);
  } finally {
    connections.close(connection);
    onClose();
  }
}

async function loadAll({ startGuards }: Running, environment: NodeJS.ProcessEnv): Promise<void> {
  const [{ preloadSdk }] = await Promise.all([
    import("../claude/runtime.ts"),
    import("../daemon/operations.ts"),
    preload(),
  ]);
  preloadSdk(cacheFolder(environment), environment);
  await startGuards();
}

async function reportOf({ shims, spares, store }: Running): Promise<NodeReport> {
  const own = (await store.leases.atWork()).filter(({ owner }) => owner?.nodeId === store.nodeId);
  const running = own.filter(({ state: { process } }) => process.phase !== "none" && process.waiting !== true);
  const turns = own.filter(({ state }) => state.turn);
  return {
    nodeId: store.nodeId,
    processes: running.length + spares.available,
    turns: turns.map(({ id, spec, title = spec.title ?? "" }) => ({ sessionId: id, title })),
    shim: { fallback: shims?.fallback, shims: (await shims?.report()) ?? [] },
  };
}

function clientServer(
  connections: Connections,
  optionsFor: (connection: Connection) => ServerOptions,
): App["serveClient"] {
  return ({ onClose, start, streams }) => {
    const connection = connections.open(start);
    const onGone = () => {
      connections.close(connection);
      onClose();
    };
    const { lastAnswersMs } = constants();
    return serveOverStdio({ ...optionsFor(connection), lastAnswersMs, onClose: onGone, ...(streams && { streams }) });
  };
}

interface HttpStart extends Pick<HttpParts, "audit" | "log" | "sessions"> {
  readonly connection: Connection;
  /** What is served in place of our tools, with sessions of its own, if any. */
  readonly factory: ServerFactory | undefined;
  readonly options: ServerOptions;
}

async function startHttp(
  { config, environment, info: { version }, local }: AppSettings,
  { connection: { bypass }, factory, options, ...parts }: HttpStart,
): Promise<HttpServing> {
  const { serveOverHttp } = await import("./http.ts");
  // When one of these clients is gone is known by its protocol session.
  const own: ServerFactory = (context) => createMcpServer({ ...options, leaving: undefined }, context);
  return serveOverHttp({
    ...parts,
    ...judgesOf(options),
    config,
    environment,
    local,
    version,
    allowsBypass: () => bypass.isAllowed(),
    ...(factory ? { factory } : { factory: own, following: options.following }),
  });
}

/** First `/readyz` fails, for load balancers; then running turns may end, and waiting calls get their results. */
async function leave(serving: HttpServing, engine: Engine | undefined, { drainMs }: Config): Promise<void> {
  serving.refuseNew();
  await engine?.stop(drainMs);
  await serving.close();
}

/** That turns were interrupted is written first; while processes end, approvers are told. */
async function end(started: Running | undefined): Promise<void> {
  await started?.engine.stop(0);
  await Promise.all([started?.engine.drain(), started?.approvers.close(APPROVERS_GRACE_MS)]);
}

/** What approvers have not been told when all else has ended has so long, ms. */
const APPROVERS_GRACE_MS = 2_000;

function auditTo(file: string | undefined, log: Logger, masker: Masker): Audit | undefined {
  if (file === undefined) return undefined;
  const onFault = (error: unknown) => log.error("the audit log cannot be written", { file, error: String(error) });
  return createAuditLog({ file, masker, onFault });
}
