import type { EngineSettings, OverHttp, Running, startEngine } from "./engine.ts";
import type { HttpParts, HttpServing, LocalHttp } from "./http.ts";
import { connectStore, storeLocation, resolveStoreName, thisProcess, type StoreSettings } from "./store.ts";
import type { Config } from "../config/schema.ts";
import { ConfigError } from "../config/error.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { constants } from "../config/constants.ts";
import { stateFolder } from "../config/state-folder.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import type { SharedFolder } from "../domain/place.ts";
import type { Operations } from "../daemon/operations.ts";
import type { Engine } from "../engine/api.ts";
import type { Logger } from "../engine/ports.ts";
import { createAuditLog } from "../log/audit-log.ts";
import { createLogger } from "../log/logger.ts";
import type { Masker } from "../log/mask.ts";
import { lazy } from "../mcp/lazy.ts";
import type { ServerOptions } from "../mcp/server-options.ts";
import type { ServerFactory } from "../mcp/http-endpoint.ts";
import { createMcpServer } from "../mcp/mcp-server.ts";
import { serveOverStdio, type StdioOptions } from "../mcp/stdio.ts";
import type { Audit } from "../tools/audit.ts";
import { clientOptions, messageChecks, preload, withLinks } from "./client-options.ts";
import { Connections, type Connection } from "./connections.ts";
import { type RecordSettings, createEnvironments } from "./environments.ts";
import { LazyStart } from "./lazy-start.ts";
import type { NodeReport } from "./own-node.ts";
import type { ClientStart, Terms } from "./terms.ts";

export type { NodeReport } from "./own-node.ts";
export type { OwnCommand } from "./terms.ts";

export interface AppSettings extends StoreSettings, RecordSettings {
  config: Config;
  bounds?: EngineSettings["bounds"];
  /** Nesting depth: 0 outside sessions, 1 in a session of a claude-agents-mcp server, and so on. */
  depth: number;
  /** Start of this process, for clients on stdio and over HTTP. */
  start: ClientStart;
  info: { name: string; version: string };
  /** Set to serve HTTP to the local user, regardless of the HTTP settings. */
  local?: LocalHttp | undefined;
  /** Path of the settings file, if any. */
  configFile?: string | undefined;
  /** Secrets by which approvers sign or log in, by `ApproverName`. */
  approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
  /** True for a daemon: clients come and go, and running turns may end before the daemon does. */
  outlivesClients?: boolean | undefined;
  /** Reason for serving a client without the daemon it wanted. */
  withoutDaemon?: string | undefined;
  /** Set if this process leaves the work of its clients to a daemon, through `Operations`. */
  operations?: Operations | undefined;
  /** Settings of the shims. `undefined` if Claude Codes end with this server. */
  shim?: EngineSettings["shim"];
  named?: EngineSettings["named"];
  /** Shared folders whose markers were read. */
  sharedFolders?: readonly SharedFolder[];
  /** Result of `isolationOf`. */
  isolation?: readonly string[] | undefined;
}

export interface App {
  readonly log: Logger;
  /** Serves an MCP client on stdin and stdout. Calls `onClose` when the client is gone. */
  serveStdio(onClose: () => void): void;
  /** Serves a further MCP client, on `client.streams`. */
  serveClient(client: ServedClient): { close(): Promise<void> };
  /** Performs operations for another process of this user, until that process leaves. */
  serveOperations(client: ServedClient & Required<Pick<ServedClient, "streams">>): void;
  /** Serves MCP over HTTP as configured, with our tools unless `factory` is given. Throws ConfigError. */
  serveHttp(factory?: ServerFactory): Promise<Pick<HttpServing, "url" | "notify">>;
  /** Number of sessions at work in this process. */
  atWork(): number;
  /** Reports processes, turns and shims of this node. Starts the engine. */
  report(): Promise<NodeReport>;
  /** Starts the engine and opens its store, as the first call does. */
  open(): Promise<void>;
  /** Loads and starts all that the first session needs, so that files of this program may be deleted afterwards. */
  preload(): Promise<void>;
  /** Ends the server; idempotent. Turns get `drainMs` first in a daemon and over HTTP, then count as interrupted. */
  close(): Promise<void>;
}

export interface ServedClient extends Pick<StdioOptions, "onClose" | "streams"> {
  readonly start: Terms;
}

/** Returns the command prefix for a pid namespace per Claude Code; empty with `none`. Throws ConfigError if unavailable. */
export async function isolationOf({ processIsolation }: Config): Promise<readonly string[]> {
  if (processIsolation === "none") return [];
  const { findPidNamespace } = await import("../claude/supervise/isolation.ts");
  return findPidNamespace().catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    const advice = "Run the server as root, or install bubblewrap and allow user namespaces; or leave the setting out.";
    throw new ConfigError(`--process-isolation pid-namespace is not available here (${why}). ${advice}`, error);
  });
}

/** Returns the terms of the only client on stdio, and of all HTTP clients. */
export function ownTerms({ config, environment, start }: Pick<AppSettings, "config" | "environment" | "start">): Terms {
  return { ...start, config, environment, isOwn: true };
}

/** Assembles the application. Modules not needed by a first `initialize` are loaded by the first tool call. */
export function createApp(settings: AppSettings): App {
  const { config, environment } = settings;
  const { environments, masker } = createEnvironments(settings);
  const log = createLogger({ level: config.logLevel, masker });
  const connections = new Connections(
    { allowsBypass: config.allowBypass, environments, mayAllow: settings.bounds?.allowBypass !== false },
    log,
  );
  const audit = openAuditLog(config.auditLog, log, masker);
  const parts = { audit, log, masker, environments, connections };
  const sessions = new LazyStart<Running, OverHttp>(async (http, over) => startSessions(settings, parts, http, over));
  const optionsFor = clientOptions(settings, {
    log,
    audit,
    masker,
    running: async () => sessions.ready(),
    stateFolder: stateFolder(environment, process.platform),
  });
  const serveClient = clientServer(connections, optionsFor);
  const http = new LazyStart<HttpServing, ServerFactory>(async (factory) => {
    // HTTP clients have no lasting connection, so all share one.
    const connection = connections.open(ownTerms(settings));
    const options = optionsFor(connection);
    const serving = await startHttp(settings, { connection, factory, options, sessions, audit, log });
    options.reported?.onChange(() => serving.notify.toolsChanged());
    return serving;
  });
  const close = lazy(async () => {
    // `http` first, because it starts `sessions`: then `sessions.end()` sees everything started.
    const serving = await http.end();
    const running = await sessions.end();
    if (serving) await stopServing(serving, running?.engine, config);
    else if (settings.outlivesClients) await running?.engine.stop(config.drainMs);
    await endEngine(running);
  });
  return {
    log,
    serveStdio: (onClose) => void serveClient({ start: ownTerms(settings), onClose }),
    serveClient,
    serveOperations: (client) => void serveOperations(client, { connections, sessions, log }),
    serveHttp: async (factory) => http.ready(factory),
    ...sessionMethods(sessions, environment),
    close,
  };
}

type SessionParts = Omit<Parameters<typeof startEngine>[1], "backend" | "http" | "process" | "storeName">;

/** Opens the store and starts the engine. Throws ConfigError if this server must not run sessions beside other machines. */
async function startSessions(
  settings: AppSettings,
  parts: SessionParts,
  http: OverHttp | undefined,
  over: AbortSignal,
): Promise<Running> {
  const [engine, { nodeFacts }] = await Promise.all([import("./engine.ts"), import("./own-node.ts")]);
  const { log } = parts;
  const location = storeLocation(settings);
  const own = { urls: http?.ownUrls, facts: nodeFacts(settings), leaseMs: settings.config.leaseMs };
  const backend = await connectStore(location, { log, over, ...own });
  const self = { storeName: await resolveStoreName(location, backend), process: await thisProcess() };
  const runsNothing = settings.operations !== undefined;
  const watch = backend.machines && !runsNothing ? await import("./node-watch.ts") : undefined;
  const nodes = await watch?.watchNodes(backend, log, over);
  const running = await engine.startEngine({ ...settings, runsNothing }, { ...parts, ...self, backend, http });
  return addOperations({ ...running, nodes }, settings);
}

function sessionMethods(
  sessions: Pick<LazyStart<Running, OverHttp>, "now" | "ready">,
  environment: NodeJS.ProcessEnv,
): Pick<App, "atWork" | "open" | "preload" | "report"> {
  return {
    atWork: () => sessions.now?.engine.atWork() ?? 0,
    report: async () => (await import("./own-node.ts")).nodeReport(await sessions.ready()),
    // `count()` opens the store and loads the driver.
    open: async () => void (await (await sessions.ready()).store.maintenance.count()),
    preload: async () => preloadAll(await sessions.ready(), environment),
  };
}

async function addOperations(running: Running, { operations }: Pick<AppSettings, "operations">): Promise<Running> {
  if (!operations) return running;
  const { withOperations } = await import("../daemon/operations.ts");
  return { ...running, engine: withOperations(running.engine, operations) };
}

interface OperationsParts {
  readonly connections: Connections;
  readonly sessions: Pick<LazyStart<Running, OverHttp>, "ready">;
  readonly log: Logger;
}

async function serveOperations(client: Parameters<App["serveOperations"]>[0], parts: OperationsParts): Promise<void> {
  const { connections, log, sessions } = parts;
  const { onClose, start, streams } = client;
  const connection = connections.open(start);
  const onFault = (error: unknown) =>
    log.error("an operation for another process failed", { error: String(error), connection: connection.id });
  try {
    const [{ engine, termsOf }, { performOperations }] = await Promise.all([
      sessions.ready(),
      import("../daemon/operations.ts"),
    ]);
    const own = engine.forConnection(termsOf(connection));
    await performOperations(streams, own, onFault);
  } catch (error) {
    onFault(error);
  } finally {
    connections.close(connection);
    onClose();
  }
}

async function preloadAll({ startGuards }: Running, environment: NodeJS.ProcessEnv): Promise<void> {
  const [{ preloadSdk }] = await Promise.all([
    import("../claude/runtime.ts"),
    import("../daemon/operations.ts"),
    preload(),
  ]);
  preloadSdk(cacheFolder(environment), environment);
  await startGuards();
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
  /** Served in place of our tools, with sessions of its own, if any. */
  readonly factory: ServerFactory | undefined;
  readonly options: ServerOptions;
}

async function startHttp(
  { config, environment, info: { version }, local }: AppSettings,
  { connection: { bypass }, factory, options, ...parts }: HttpStart,
): Promise<HttpServing> {
  const { serveOverHttp } = await import("./http.ts");
  // `leaving` does not apply: an HTTP client ends with its protocol session.
  const own: HttpParts["factory"] = (links) => (context) =>
    createMcpServer({ ...withLinks(options, links), leaving: undefined }, context);
  return serveOverHttp({
    ...parts,
    ...messageChecks(options),
    config,
    environment,
    local,
    version,
    allowsBypass: () => bypass.isAllowed(),
    endStreams: async () => options.events?.streams.end(),
    ...(factory ? { factory: () => factory } : { factory: own, following: options.following }),
  });
}

/** Fails `/readyz` first, for load balancers. Then running turns may end, and waiting calls get results. */
async function stopServing(serving: HttpServing, engine: Engine | undefined, { drainMs }: Config): Promise<void> {
  serving.refuseNew();
  await engine?.stop(drainMs);
  await serving.close();
}

/** Records the interruption of turns first. While processes end, approvers are told. */
async function endEngine(started: Running | undefined): Promise<void> {
  await started?.engine.stop(0);
  await started?.nodes?.stop();
  const closing = [started?.approvers.close(APPROVERS_GRACE_MS), started?.webhooks.close()];
  await Promise.all([started?.engine.drain(), ...closing]);
}

/** Time for approvers to receive the last messages, ms, while processes end. */
const APPROVERS_GRACE_MS = 2_000;

function openAuditLog(file: string | undefined, log: Logger, masker: Masker): Audit | undefined {
  if (file === undefined) return undefined;
  const onFault = (error: unknown) => log.error("the audit log cannot be written", { file, error: String(error) });
  return createAuditLog({ file, masker, onFault });
}
