import { existsSync, realpathSync } from "node:fs";
import type { EnvironmentRecords } from "../claude/environment-records.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { SDK_VERSION } from "../packages/pinned.ts";
import { Installer } from "../claude/installer.ts";
import { ProtectedPlaces, type ServerPlaces } from "../claude/protected-places.ts";
import { ClaudeLocator } from "../claude/locate.ts";
import { claudeRuntime, type ClaudeRuntime } from "../claude/runtime.ts";
import type { ClaudeDependencies } from "../claude/dependencies.ts";
import { Guards } from "../claude/supervise/guards.ts";
import type { Shims } from "../claude/shim/shims.ts";
import type { ShimSettings } from "../claude/shim/start-shim.ts";
import { startApprovers, type StartedApprovers } from "./start-approvers.ts";
import type { ApproverHttp } from "../approvers/approver.ts";
import { closedByApprovers } from "../config/approvals/approver-fields.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { confinements } from "../config/confinement.ts";
import type { Bounds } from "../config/bounds.ts";
import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { socketCandidates } from "../daemon/socket-folders.ts";
import type { ConnectionTerms, Engine } from "../engine/api.ts";
import { systemClock } from "./system-clock.ts";
import { createEngine } from "../engine/engine.ts";
import type { Retention } from "../engine/retention.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Logger, SessionBackend, Spares } from "../engine/ports.ts";
import type { SessionMasks } from "../log/session-masks.ts";
import { requestEntry } from "../log/audit-log.ts";
import { fileAccess } from "../security/files/limited.ts";
import { ownedPaths, ownFiles, type Installation } from "../security/installation-paths.ts";
import { withObserver, type OnAppended } from "../store/open.ts";
import { readPrivateFile } from "../config/private-file.ts";
import { profilesOf } from "../config/profiles.ts";
import { stateFolder, userFilePath } from "../config/state-folder.ts";
import { defaultStore, storePasswordFile, storeTraits } from "../config/store.ts";
import type { Audit } from "../tools/audit.ts";
import type { Connection, Connections } from "./connections.ts";
import { defaultVerification, processLimitsOf, unattendedOf, useOf } from "./engine-limits.ts";
import type { NodeWatch } from "./node-watch.ts";
import { connectionTerms, operatorOf } from "./operator.ts";
import { startWebhooks, type Webhooks, withWakes } from "./webhooks.ts";

/** Assembles engine, runtime, store and approvers. Loaded by the first tool call. */

export interface EngineSettings {
  readonly config: Config;
  /** Environment of the server, not of a client. */
  readonly environment: NodeJS.ProcessEnv;
  /** Terms no client can loosen. */
  readonly bounds?: Bounds | undefined;
  /** Nesting depth: 0 outside sessions, 1 in a session of a claude-agents-mcp server, and so on. */
  readonly depth: number;
  readonly approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
  readonly info: { readonly version: string };
  readonly outlivesClients?: boolean | undefined;
  /** Path of the settings file, if any. */
  readonly configFile?: string | undefined;
  /** True if a daemon runs the sessions: this process takes none over. */
  readonly runsNothing?: boolean | undefined;
  /** Resolves once this server holds its daemon name. Until then, everything of a former holder stays unchanged. */
  readonly named?: Promise<void> | undefined;
  /** See `ShimSettings`. `undefined` if Claude Codes end with this server. */
  readonly shim?: Omit<ShimSettings, "log" | "sdk"> | undefined;
  /** Command prefix to give each command a pid namespace of its own. */
  readonly isolation?: readonly string[] | undefined;
}

/** `Engine` with its dependencies. */
export interface Running {
  readonly engine: Engine;
  /** Converts a connection to terms for `engine.forConnection`. */
  readonly termsOf: (connection: Connection) => ConnectionTerms;
  readonly store: SessionBackend;
  readonly spares: Pick<Spares, "available">;
  readonly shims: Pick<Shims, "fallback" | "report"> | undefined;
  readonly startGuards: ClaudeRuntime["startGuards"];
  readonly approvers: Pick<StartedApprovers, "close">;
  readonly webhooks: Pick<Webhooks, "close">;
  /** Set if several machines share the store, and this server runs sessions. */
  readonly nodes?: Pick<NodeWatch, "isDraining" | "stop"> | undefined;
}

/** Dependencies for clients over HTTP. */
export interface OverHttp extends ApproverHttp {
  /** Called after each session change written by this server. */
  readonly onAppended: OnAppended;
  /** URL patterns of this server; * stands for any text. */
  readonly ownUrls: readonly string[];
}

interface EngineParts {
  readonly backend: SessionBackend;
  /** Name of the store: equal for servers with a common store, otherwise different. */
  readonly storeName: string;
  readonly process: { readonly pid: number; readonly startedAt: string };
  readonly http: OverHttp | undefined;
  readonly audit: Audit | undefined;
  readonly log: Logger;
  readonly masker: SessionMasks;
  readonly environments: EnvironmentRecords;
  readonly connections: Pick<Connections, "allowsBypass" | "onNewCommand" | "onReach" | "ownCommands" | "reach">;
}

export async function startEngine(settings: EngineSettings, parts: EngineParts): Promise<Running> {
  const { connections, environments, http, log, masker } = parts;
  fileAccess.onStuck = (paths) => log.warn("files or folders do not answer", { paths });
  const { config, depth } = settings;
  const backend = withWakes(parts.backend, () => webhooks.wake());
  const approvers = await startEngineApprovers(settings, { ...parts, backend }, () => engine);
  const outgoing = settings.runsNothing === true ? [] : approvers.outgoing;
  const reach = settings.runsNothing === true ? "off" : config.eventWebhooks;
  const maskOf = (sessionId: string) => (fields: JsonObject) => masker.ofSession(sessionId).fields(fields);
  const webhooks = startWebhooks({ backend, outgoing, reach, maskOf, log });
  const store = withFollowers(webhooks.store, [http, approvers.offers, requestAuditor(parts)]);
  const runtime = claudeRuntime({
    ...createClaude(settings, log),
    environments,
    depth,
    ownCommands: () => connections.ownCommands(),
    ownUrls: async () => [...new Set([...(http?.ownUrls ?? []), ...(await store.leases.urls())])],
    confine: confinements(config),
    profiles: { of: profilesOf(config), readSecret: async (file) => readPrivateFile(file, "secret") },
    protection: new ProtectedPlaces(await serverPlaces(settings), environments),
    guards: await Guards.find({ forceReaper: constants().reaperAlone, isolation: settings.isolation }),
    stateFolder: stateFolder(settings.environment, process.platform),
    server: { store: parts.storeName, ...parts.process },
    compareMs: constants().compareMs,
    node: parts.backend.machines?.self.name,
    shim: settings.shim && { ...settings.shim, sdk: SDK_VERSION, log },
    spares: config.spares,
    spareIdleMs: config.idleProcessMs,
    masksOf: (sessionId) => masker.ofSession(sessionId),
    log,
  });
  adoptWhenNamed(runtime, settings);
  // Replaces spares: a session in an older spare could start this server by the new command line, or write files run by
  // sessions of the new client.
  connections.onNewCommand(() => runtime.spares.fillWhenQuiet());
  environments.onOpen(() => runtime.spares.fillWhenQuiet());
  const { bounds = {} } = settings;
  const allowsBypass = () => connections.allowsBypass();
  const engine = createEngine({
    ...operatorOf(settings, { depth, environmentId: "", bounds, allowsBypass }),
    addsOnlyBounds: settings.outlivesClients === true,
    receipts: config.receipt === "on",
    profilesOf: profilesOf(config),
    useOf: (session) => useOf(config, session),
    defaultVerify: async (cwd) => defaultVerification(config.verify, cwd),
    backend: store,
    runtime,
    clock: systemClock,
    announces: (http !== undefined || store.machines !== undefined) && settings.runsNothing !== true,
    watches: settings.runsNothing !== true && (settings.named ?? true),
    log,
    mask: (event, sessionId) => masker.ofSession(sessionId).event(event),
    unattended: settings.outlivesClients === true ? unattendedOf(connections) : undefined,
    retention: retentionOf(config),
    processLimits: processLimitsOf(config),
  });
  const { shims, spares, startGuards } = runtime;
  const termsOf: Running["termsOf"] = (connection) => connectionTerms(connection, { depth, bounds });
  return { engine, termsOf, store, spares, shims, startGuards, approvers, webhooks };
}

/** Takes over shims of a former server, but only once this server holds the name, because the shims belong to the holder. */
function adoptWhenNamed({ shims }: ClaudeRuntime, { named }: EngineSettings): void {
  if (named) void named.then(() => shims?.adopt());
  else shims?.adopt();
}

/** Creates the locator and the preparation of Claude Code. */
function createClaude({ environment }: EngineSettings, log: Logger): Pick<ClaudeDependencies, "claude" | "installer"> {
  const place = { environment, cacheFolder: cacheFolder(environment) };
  const packages = new PackageCache(place);
  const claude = new ClaudeLocator({ ...place, log, packages });
  return { claude, installer: new Installer({ claude, packages }) };
}

/** Returns the server's own files and folders. */
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
    storePassword: storePasswordFile(store, environment),
    cacheFolder: cacheFolder(environment),
  };
}

/** Returns places closed to sessions under every environment record. */
async function serverPlaces(settings: EngineSettings): Promise<ServerPlaces> {
  const installation = installationOf(settings);
  const { principals, profiles } = settings.config;
  const users = Object.values(principals);
  const configured = [...users, ...Object.values(profiles)];
  return {
    owned: await ownedPaths(installation),
    files: ownFiles(installation),
    configFolders: configured.flatMap(({ claudeConfigDir }) => claudeConfigDir ?? []),
    trusted: users.flatMap(({ trustDirs }) => trustDirs ?? []),
  };
}

/**
 * Copies each step of a request to the audit log. An entry may come a moment late, because the session's principal is looked
 * up.
 */
function requestAuditor({ audit, backend, log }: EngineParts): { readonly onAppended: OnAppended } | undefined {
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

function withFollowers(
  backend: SessionBackend,
  followers: readonly ({ readonly onAppended: OnAppended } | undefined)[],
): SessionBackend {
  const all = followers.flatMap((follower) => follower ?? []);
  if (all.length === 0) return backend;
  return withObserver(backend, (sessionId, change) => {
    for (const each of all) each.onAppended(sessionId, change);
  });
}

async function startEngineApprovers(
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
