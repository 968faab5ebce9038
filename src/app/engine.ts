import { existsSync, realpathSync } from "node:fs";
import type { Environments } from "../claude/environments.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { SDK_VERSION } from "../packages/pinned.ts";
import { Preparation } from "../claude/preparation.ts";
import { ProtectedPlaces, type ServerPlaces } from "../claude/protected-places.ts";
import { ClaudeLocator } from "../claude/locate.ts";
import { claudeRuntime, type ClaudeRuntime } from "../claude/runtime.ts";
import type { ClaudeSettings } from "../claude/settings.ts";
import { Guards } from "../claude/supervise/guards.ts";
import type { ShimSettings, Shims } from "../claude/shim/shims.ts";
import { startApprovers, type StartedApprovers } from "./start-approvers.ts";
import type { ApproverHttp } from "../approvers/approver.ts";
import { closedByApprovers } from "../config/approvals/approver-fields.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { confinements } from "../config/confinement.ts";
import type { Bounds } from "../config/bounds.ts";
import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { socketCandidates } from "../daemon/folders.ts";
import type { ConnectionTerms, Engine } from "../engine/api.ts";
import { systemClock } from "../engine/clock.ts";
import { createEngine } from "../engine/engine.ts";
import type { Retention } from "../engine/retention.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Logger, SessionBackend, Spares } from "../engine/ports.ts";
import type { SessionMasks } from "../log/session-masks.ts";
import { requestEntry } from "../log/audit.ts";
import { fileAccess } from "../security/files/limited.ts";
import { ownedPlaces, ownFiles, type Installation } from "../security/owned.ts";
import { withObserver, type OnAppended } from "../store/open.ts";
import { stateFolder, userFilePath } from "../config/state-folder.ts";
import { defaultStore, storeTraits } from "../config/store.ts";
import type { Audit } from "../tools/audit.ts";
import type { Connection, Connections } from "./connections.ts";
import { processLimitsOf, unattendedOf } from "./limits.ts";
import { connectionTerms, operatorOf } from "./operator.ts";

/** What runs sessions, put together; loaded by the first tool call. */

export interface EngineSettings {
  readonly config: Config;
  /** The environment of the server. */
  readonly environment: NodeJS.ProcessEnv;
  /** What no client can leave. */
  readonly bounds?: Bounds | undefined;
  /** How deep this server is nested in sessions of servers like it. */
  readonly depth: number;
  /** By the name of an approver. */
  readonly approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
  readonly info: { readonly version: string };
  readonly outlivesClients?: boolean | undefined;
  /** The file that settings were read from. */
  readonly configFile?: string | undefined;
  /** Another process runs what clients start: this one looks for nothing that it could take over. */
  readonly runsNothing?: boolean | undefined;
  /** Resolves when this server has its name. Until then it changes nothing that belongs to another server of the name. */
  readonly named?: Promise<void> | undefined;
  /** See `ShimSettings`; undefined where Claude Codes end with this server. */
  readonly shim?: Omit<ShimSettings, "log" | "sdk"> | undefined;
  /** Words before every command that give it a pid namespace of its own. */
  readonly isolation?: readonly string[] | undefined;
}

/** An engine and what it runs on. */
export interface Running {
  readonly engine: Engine;
  /** What the engine takes of a connection. */
  readonly termsOf: (connection: Connection) => ConnectionTerms;
  readonly store: SessionBackend;
  readonly spares: Pick<Spares, "available">;
  readonly shims: Pick<Shims, "fallback" | "report"> | undefined;
  readonly startGuards: ClaudeRuntime["startGuards"];
  readonly approvers: Pick<StartedApprovers, "close">;
}

/** What there is where clients come over HTTP. */
export interface OverHttp extends ApproverHttp {
  /** Told of each change of a session that this server has written. */
  readonly onAppended: OnAppended;
  /** Where this server is reached; * stands for any text. */
  readonly ownUrls: readonly string[];
}

interface EngineParts {
  readonly backend: SessionBackend;
  /** The same for all servers that share the store, and for no others. */
  readonly storeName: string;
  readonly process: { readonly pid: number; readonly startedAt: string };
  readonly http: OverHttp | undefined;
  readonly audit: Audit | undefined;
  readonly log: Logger;
  readonly masker: SessionMasks;
  readonly environments: Environments;
  readonly connections: Pick<Connections, "allowsBypass" | "onNewCommand" | "onReach" | "ownCommands" | "reach">;
}

export async function startEngine(settings: EngineSettings, parts: EngineParts): Promise<Running> {
  const { connections, environments, http, log, masker } = parts;
  fileAccess.onStuck = (paths) => log.warn("files or folders do not answer", { paths });
  const { config, depth } = settings;
  const confine = confinements(config);
  const approvers = await approversOf(settings, parts, () => engine);
  const store = followedBy(parts.backend, [http, ...approvers.followers, auditorOf(parts)]);
  const runtime = claudeRuntime({
    ...claudeOf(settings, log),
    environments,
    depth,
    ownCommands: () => connections.ownCommands(),
    ownUrls: async () => [...new Set([...(http?.ownUrls ?? []), ...(await store.leases.urls())])],
    confine,
    protection: new ProtectedPlaces(await serverPlaces(settings), environments),
    guards: await Guards.find({ forceReaper: constants().reaperAlone, isolation: settings.isolation }),
    server: { store: parts.storeName, ...parts.process },
    shim: settings.shim && { ...settings.shim, sdk: SDK_VERSION, log },
    spares: config.spares,
    spareIdleMs: config.idleProcessMs,
    masksOf: (sessionId) => masker.ofSession(sessionId),
    log,
  });
  adoptWhenNamed(runtime, settings);
  // Sessions in spares that were started without it could start this server again by it, or write what the client's sessions start.
  connections.onNewCommand(() => runtime.spares.stir());
  environments.onOpen(() => runtime.spares.stir());
  const { bounds = {} } = settings;
  const allowsBypass = () => connections.allowsBypass();
  const engine = createEngine({
    ...operatorOf(settings, { depth, environmentId: "", bounds, allowsBypass }),
    addsOnlyBounds: settings.outlivesClients === true,
    backend: store,
    runtime,
    clock: systemClock,
    announces: http !== undefined && settings.runsNothing !== true,
    watches: settings.runsNothing !== true && (settings.named ?? true),
    log,
    mask: (event, sessionId) => masker.ofSession(sessionId).event(event),
    unattended: settings.outlivesClients === true ? unattendedOf(connections) : undefined,
    retention: retentionOf(config),
    processLimits: processLimitsOf(config),
  });
  const { shims, spares, startGuards } = runtime;
  const termsOf: Running["termsOf"] = (connection) => connectionTerms(connection, { depth, bounds });
  return { engine, termsOf, store, spares, shims, startGuards, approvers };
}

/** Shims that a former server of the name has left belong to the server that has the name. */
function adoptWhenNamed({ shims }: ClaudeRuntime, { named }: EngineSettings): void {
  if (named) void named.then(() => shims?.adopt());
  else shims?.adopt();
}

/** Locator and preparation of Claude Code. */
function claudeOf({ environment }: EngineSettings, log: Logger): Pick<ClaudeSettings, "claude" | "preparation"> {
  const place = { environment, cacheFolder: cacheFolder(environment) };
  const packages = new PackageCache(place);
  const claude = new ClaudeLocator({ ...place, log, packages });
  return { claude, preparation: new Preparation({ claude, packages }) };
}

/** Where this server keeps what is its own. */
function installationOf({ config, configFile, environment }: EngineSettings): Installation {
  const state = stateFolder(environment, process.platform);
  const { store = defaultStore(state, process.platform) } = config;
  return {
    settings: config,
    approvers: closedByApprovers(config),
    configFiles: [userFilePath(environment), ...(configFile === undefined ? [] : [configFile])],
    stateFolder: state,
    socketFolders: socketCandidates(existsSync(state) ? realpathSync(state) : state),
    store: storeTraits(store).file,
    cacheFolder: cacheFolder(environment),
  };
}

/** What is closed to sessions whatever environment records there are. */
async function serverPlaces(settings: EngineSettings): Promise<ServerPlaces> {
  const installation = installationOf(settings);
  const principals = Object.values(settings.config.principals);
  return {
    owned: await ownedPlaces(installation),
    files: ownFiles(installation),
    configFolders: principals.flatMap(({ claudeConfigDir }) => claudeConfigDir ?? []),
    trusted: principals.flatMap(({ trustDirs }) => trustDirs ?? []),
  };
}

/** Every step of a request stands in the audit log too. Its session's principal is looked up, so it may come a moment later. */
function auditorOf({ audit, backend, log }: EngineParts): { readonly onAppended: OnAppended } | undefined {
  if (!audit) return undefined;
  const write = async (sessionId: string, entries: readonly JsonObject[]) => {
    const principal = (await backend.rows.principalOf(sessionId)) ?? "";
    for (const entry of entries) audit({ principal, tool: "request", sessionId, outcome: "ok", ...entry });
  };
  return {
    onAppended: (sessionId, { events }) => {
      const entries = events.map((event) => requestEntry(event)).filter((entry) => entry !== undefined);
      if (entries.length === 0) return;
      write(sessionId, entries).catch((error: unknown) => log.warn("audit", { sessionId, error: String(error) }));
    },
  };
}

function followedBy(
  backend: SessionBackend,
  followers: readonly ({ readonly onAppended: OnAppended } | undefined)[],
): SessionBackend {
  const all = followers.flatMap((follower) => follower ?? []);
  if (all.length === 0) return backend;
  return withObserver(backend, (sessionId, change) => {
    for (const each of all) each.onAppended(sessionId, change);
  });
}

async function approversOf(
  { approverSecrets: secrets = new Map(), config, info }: EngineSettings,
  { backend: store, ...parts }: EngineParts,
  engine: () => Engine,
): Promise<StartedApprovers> {
  return startApprovers({ config, secrets, version: info.version, store, engine, ...parts });
}

function retentionOf({ retentionDays, retentionMegabytes }: Config): Retention {
  const { cleanupIntervalMs: everyMs } = constants();
  return { maxAgeMs: retentionDays * DAY_MS, maxBytes: retentionMegabytes * 1_000_000, everyMs };
}

const DAY_MS = 86_400_000;
