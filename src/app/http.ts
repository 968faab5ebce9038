import { createHmac } from "node:crypto";
import { createConsole } from "./console.ts";
import type { OverHttp, Running } from "./engine.ts";
import { addressOf } from "../config/http.ts";
import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { namedBudgets } from "../config/budgets.ts";
import { ConfigError } from "../config/error.ts";
import { RequestLinks } from "../console/request-links.ts";
import type { Logger } from "../engine/ports.ts";
import { createAuthenticator, firstStartText } from "../http/auth/authenticator.ts";
import { Connections } from "../http/http-limits.ts";
import { readPackage } from "../config/version.ts";
import { createHttpApp, type AuditRefusal, type HttpAppOptions } from "../http/http-app.ts";
import { isOfMachines, storeTraits } from "../config/store.ts";
import { hostOf, LOOPBACK, type AllowedNames } from "../http/request-guards.ts";
import { createHealth } from "../http/health.ts";
import { serverCard } from "../http/server-card.ts";
import { listen, type Listening, type ListenOptions } from "../http/listen.ts";
import { createMetrics } from "../http/metrics/metrics.ts";
import { createRequestEndpoint, type RequestEndpoint } from "../http/permission-requests.ts";
import { lazy } from "../mcp/lazy.ts";
import { SessionIds } from "../mcp/session-ids.ts";
import {
  createHttpEndpoint,
  type HttpEndpoint,
  type HttpEndpointOptions,
  type ServerFactory,
} from "../mcp/http-endpoint.ts";
import type { LazyStart } from "./lazy-start.ts";
import { signingKey } from "./signing-key.ts";
import { storeLocation } from "./store.ts";
import { connectionLimit } from "../security/descriptors.ts";
import type { Audit } from "../tools/audit.ts";

/** Assembles a server reached over HTTP. Loaded only if needed. */

export interface HttpParts {
  readonly config: Config;
  /** Returns the function that creates the MCP server for a client. */
  readonly factory: (links: RequestLinks | undefined) => ServerFactory;
  /** Set if the served sessions can be followed. */
  readonly following?: HttpEndpointOptions["following"];
  readonly endStreams?: HttpEndpointOptions["endStreams"];
  readonly environment: NodeJS.ProcessEnv;
  /** Address and only accepted token for the local user, in place of the configured ones. */
  readonly local: LocalHttp | undefined;
  readonly allowsBypass: () => boolean;
  /** Engine, started here because its start needs `ownUrls`. */
  readonly sessions: LazyStart<Running, OverHttp>;
  readonly version: string;
  readonly scopeMissing: HttpAppOptions["scopeMissing"];
  readonly takesAttachments: HttpAppOptions["takesAttachments"];
  readonly audit: Audit | undefined;
  readonly log: Logger;
}

/** Settings of a server for the local user alone. */
export interface LocalHttp {
  /** `host:port` */
  readonly address: string;
  readonly token: string;
}

export interface HttpServing {
  /** URL of the MCP endpoint. */
  readonly url: string;
  readonly notify: HttpEndpoint["notify"];
  /** Makes `/readyz` fail from now on. */
  refuseNew(): void;
  /** Ends calls and streams. Answers already given are still delivered, waits are cut short. */
  close(): Promise<void>;
}

/** Time for clients to take the last answers after all calls have ended, ms. */
const LAST_ANSWERS_MS = 2_000;

/** Addresses to listen on, but not to connect to. */
const WILDCARD_ADDRESS = /\/\/(?:0\.0\.0\.0|\[::\])(?=:|$)/;

/** Throws ConfigError if `address` cannot be listened on. */
export async function serveOverHttp(parts: HttpParts): Promise<HttpServing> {
  const { config, factory, log, scopeMissing, sessions, takesAttachments, version } = parts;
  const { host, port } = addressOf(parts.local?.address ?? config.http ?? "");
  const names = namesOf(config, host);
  const { idleClientMs: idleMs, maxBodyBytes, maxConnections, maxStreams, receiveMs, sendMs } = constants();
  let origin = "";
  // A local user connects directly, even if `config.publicUrl` names a proxy.
  const publicUrl = () =>
    (parts.local ? undefined : config.publicUrl) ?? origin.replace(WILDCARD_ADDRESS, "//localhost");
  const links = requestLinks(parts, host, publicUrl);
  const endpoint = createHttpEndpoint({
    ...parts,
    following: parts.following,
    factory: factory(links),
    limits: { idleMs, most: maxStreams },
    ids: new SessionIds(lazy(async () => deriveIdKey(parts))),
  });
  const leaving = new AbortController();
  const auth = await createHttpAuthenticator(parts, host, publicUrl);
  const gaugeSources = () => sessions.now && { ...sessions.now, budgets: namedBudgets(config), now: Date.now };
  const metrics = createMetrics({ version, gaugeSources, log });
  const connections = new Connections({ most: maxConnections || connectionLimit(), anonymousMs: ANONYMOUS_MS }, log);
  const app = createHttpApp({
    connections,
    names,
    limits: { rateLimit: config.rateLimit, maxBodyBytes, maxStreams },
    auth,
    scopeMissing,
    takesAttachments,
    mcp: endpoint.fetch,
    requests: createAuditedRequests(parts),
    console: config.console ? createConsole({ ...parts, links, publicUrl, leaving: leaving.signal }) : undefined,
    card: createCard(parts, publicUrl, endpoint),
    health: createHealthCheck(parts, leaving.signal),
    metrics,
    audit: refusalAudit(parts),
    log,
  });
  const fetch: ListenOptions["fetch"] = async (request, bindings) => app.fetch(request, bindings);
  const flag = parts.local ? "--port" : "--http";
  const bounds = { receiveMs, sendMs, onSlowReader: slowReaderHandler(metrics, log), connections };
  const listening = await listen({ host, port, fetch, ...bounds }).catch((error: unknown) => cannotListen(flag, error));
  origin = listening.url;
  const url = `${origin}/mcp`;
  await sessions.ready({
    onAppended: (sessionId, change) => metrics.onAppended(sessionId, change),
    ownUrls: urlsOf(names, origin, publicUrl()),
    publicUrl: publicUrl(),
    countDelivery: (outcome) => metrics.delivery(outcome),
  });
  log.info("serving MCP over HTTP", { url });
  if (auth.made)
    writeToStderr(firstStartText(auth.made, { url: `${publicUrl()}/mcp`, showToken: process.stderr.isTTY }));
  return {
    url,
    notify: endpoint.notify,
    refuseNew: () => leaving.abort(),
    close: async () => closeBoth(endpoint, listening),
  };
}

/**
 * Returns the links to requests for clients of this server. `undefined` without a console, without an address that clients on
 * other machines can open, and on a store of several machines, because another machine might be asked for the page.
 */
function requestLinks(
  { config, environment }: Pick<HttpParts, "config" | "environment">,
  host: string,
  publicUrl: () => string,
): RequestLinks | undefined {
  const isReachable = config.publicUrl !== undefined || LOOPBACK.has(host);
  if (!config.console || !isReachable || isOfMachines(storeLocation({ config, environment }))) return undefined;
  const address = () => `${publicUrl().replace(/\/+$/, "")}/console/#link=`;
  return new RequestLinks({ address, lifetimeMs: constants().requestLinkMs });
}

/** Derives the key from state folder and store, so that another server with both accepts the clients of this server. */
async function deriveIdKey({ config, environment, log, sessions }: HttpParts): Promise<Uint8Array> {
  const folder = stateFolder(environment, process.platform);
  const lost = "clients of the 2025 protocol begin anew";
  const location = storeLocation({ config, environment });
  const machines = isOfMachines(location) ? (await sessions.ready()).store.machines : undefined;
  const key = await signingKey({ purpose: "protocol-session", machines, stateFolder: folder, lost, log });
  // Machines may spell the address of their store differently.
  return machines ? key : createHmac("sha256", key).update(storeTraits(location).text).digest();
}

function createCard({ config, local }: HttpParts, publicUrl: () => string, { protocolVersions }: HttpEndpoint) {
  // Read at the start, because the package can be deleted while the server runs.
  const { description, registryName, version } = readPackage();
  const hasIssuer = local === undefined && config.oauth !== undefined;
  const facts = { description, registryName, version, protocolVersions, hasIssuer, needsToken: config.auth };
  return () => serverCard({ ...facts, publicUrl: publicUrl() });
}

function createHealthCheck({ sessions, version }: HttpParts, leaving: AbortSignal) {
  return createHealth({
    version,
    busyWith: () => {
      if (leaving.aborted || sessions.now?.nodes?.isDraining === true) return "draining";
      return sessions.now ? undefined : "starting";
    },
    readStore: async () => sessions.now?.store.maintenance.count(),
  });
}

function slowReaderHandler(metrics: ReturnType<typeof createMetrics>, log: Logger): ListenOptions["onSlowReader"] {
  return () => {
    metrics.slowReaderCut();
    log.warn("a client that did not read its answer was cut off");
  };
}

/** Maximum age of a connection without a token, ms. Clients with a token send it with the first request. */
const ANONYMOUS_MS = 10_000;

async function closeBoth(endpoint: HttpEndpoint, listening: Listening): Promise<void> {
  const closed = listening.close(LAST_ANSWERS_MS);
  await endpoint.close();
  await closed;
}

async function createHttpAuthenticator(
  { config, environment, local, log }: HttpParts,
  host: string,
  publicUrl: () => string,
) {
  const own = Object.values(config.principals).flatMap((terms) =>
    terms.allowDirs === "any" ? [] : (terms.allowDirs ?? []),
  );
  const workFolders = [...config.allowDirs, ...own];
  const taken = local ? { ...config, ...LOCAL_USER_ONLY } : config;
  return createAuthenticator({
    ...taken,
    host,
    publicUrl,
    stateFolder: stateFolder(environment, process.platform),
    workFolders,
    runToken: local?.token,
    log,
  });
}

/** Accepts the local user only. */
const LOCAL_USER_ONLY = { principals: {}, oauth: undefined };

/** Adds refused requests to the audit log. */
function refusalAudit({ audit }: HttpParts): AuditRefusal | undefined {
  return audit && (({ address, principal, reason }) => audit({ principal, tool: "http", address, outcome: reason }));
}

/** Serves answers to permission requests and writes the audit log of them. */
function createAuditedRequests({ audit, sessions }: HttpParts): RequestEndpoint {
  return createRequestEndpoint({
    by: "webhook",
    engine: () => sessions.get().engine,
    audit: audit && ((entry) => audit({ tool: "http", action: "answer", ...entry })),
  });
}

/** Writes for the person at the terminal, because `log` is for programs. */
const writeToStderr = (text: string): void => void process.stderr.write(text);

function cannotListen(flag: string, error: unknown): never {
  throw new ConfigError(`${flag}: cannot listen: ${error instanceof Error ? error.message : String(error)}.`, error);
}

/** Returns URL patterns by which a session could reach this server. */
function urlsOf({ hosts }: AllowedNames, origin: string, publicUrl: string): string[] {
  const { port } = new URL(origin);
  const own = [...hosts].map((host) => `http://${host}:${port}/*`);
  // A host name may also lead here through a proxy of unknown scheme and port.
  const names = [...hosts].filter((host) => !LOOPBACK.has(host));
  const proxied = names.flatMap((host) => [`http://${host}/*`, `https://${host}/*`, `https://${host}:*/*`]);
  return [`${publicUrl.replace(/\/+$/, "")}/*`, ...own, ...proxied];
}

function namesOf({ allowHosts, allowOrigins, publicUrl }: Config, host: string): AllowedNames {
  const own = publicUrl === undefined ? [] : [urlOf(publicUrl)];
  const bound = LOOPBACK.has(host) || host === "0.0.0.0" || host === "[::]" ? [...LOOPBACK] : [host];
  return {
    hosts: new Set([...bound, ...own.map((url) => url.hostname), ...allowHosts].map((name) => hostOf(name))),
    origins: new Set([...own.map(({ origin }) => origin), ...allowOrigins]),
  };
}

function urlOf(publicUrl: string): URL {
  if (/^https?:/i.test(publicUrl) && URL.canParse(publicUrl)) return new URL(publicUrl);
  throw new ConfigError(
    `--public-url is ${JSON.stringify(publicUrl)}: must be a URL, such as https://agents.example.com.`,
  );
}
