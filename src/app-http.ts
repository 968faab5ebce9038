import { dirname } from "node:path";
import type { Config } from "./config/schema.ts";
import { ConfigError } from "./config/error.ts";
import type { Engine } from "./engine/api.ts";
import type { Logger } from "./engine/ports.ts";
import { createAuthenticator } from "./http/auth/authenticator.ts";
import { firstStartText } from "./http/auth/first-start.ts";
import { createDoor, type AuditRefusal, type DoorOptions } from "./http/door.ts";
import { hostOf, LOOPBACK, type Names } from "./http/guards.ts";
import { listen } from "./http/listen.ts";
import { createHttpEndpoint, type HttpEndpoint, type ServerFactory } from "./mcp/http.ts";
import { defaultStorePath } from "./store/open.ts";
import type { Audit } from "./tools/audit.ts";

/** The assembly of a server that is reached over HTTP; loaded only for one. */

export interface HttpParts {
  readonly config: Config;
  /** What is served. */
  readonly factory: ServerFactory;
  readonly environment: NodeJS.ProcessEnv;
  /** What runs sessions; started with the server. */
  readonly engine: () => Promise<Engine>;
  readonly audit: Audit | undefined;
  readonly log: Logger;
  /** Writes a text for the person who starts the server. */
  readonly tell: (text: string) => void;
}

export interface HttpServing {
  /** Where MCP is served. */
  readonly url: string;
  readonly notify: HttpEndpoint["notify"];
  /** From here on readiness is denied. */
  refuseNew(): void;
  /** Ends calls and streams: what they were told is told, what they wait for is over. */
  close(): Promise<void>;
}

/** After the last call was ended, its answer has so long to be taken, ms. */
const LAST_WORDS_MS = 2_000;

/** Throws ConfigError where it cannot listen. */
export async function serveOverHttp({
  audit,
  config,
  engine,
  environment,
  factory,
  log,
  tell,
}: HttpParts): Promise<HttpServing> {
  const { host, port } = addressOf(config.http ?? "");
  const endpoint = createHttpEndpoint({
    factory,
    limits: { idleMs: config.idleClientMs, most: config.maxStreams },
    log,
  });
  let isLeaving = false;
  let origin = "";
  const publicUrl = () => config.publicUrl ?? origin;
  const stateFolder = dirname(defaultStorePath(environment, process.platform));
  const auth = await createAuthenticator({ ...config, host, publicUrl, stateFolder, log });
  await engine();
  // TEMPORARY
  const door: Pick<DoorOptions, "scopeOf" | "health" | "metrics"> = {
    scopeOf: () => undefined,
    health: {
      live: () => Response.json({}),
      ready: async () => Promise.resolve(Response.json({}, { status: isLeaving ? 503 : 200 })),
    },
    metrics: {
      began: () => () => undefined,
      refused: () => undefined,
      text: async () => Promise.resolve(""),
      contentType: "text/plain",
    },
  };
  const refusals: AuditRefusal | undefined =
    audit && (({ address, principal, reason }) => audit({ principal, tool: "http", address, outcome: reason }));
  const names = namesOf(config, host);
  const app = createDoor({ ...door, auth, names, limits: config, mcp: endpoint.fetch, audit: refusals, log });
  const onSlowReader = () => log.warn("a client that took nothing of its answer was cut off");
  const { receiveMs, sendMs } = config;
  const listening = await listen({ host, port, fetch: app.fetch, receiveMs, sendMs, onSlowReader }).catch(
    (error: unknown) => {
      throw new ConfigError(`Cannot listen on ${host}:${String(port)}: ${String(error)}`, error);
    },
  );
  origin = listening.url;
  const url = `${origin}/mcp`;
  log.info("serving MCP over HTTP", { url });
  if (auth.made) tell(firstStartText(auth.made, { url: `${publicUrl()}/mcp`, showToken: process.stderr.isTTY }));
  return {
    url,
    notify: endpoint.notify,
    refuseNew: () => {
      isLeaving = true;
    },
    close: async () => {
      const closed = listening.close(LAST_WORDS_MS);
      await endpoint.close();
      await closed;
    },
  };
}

/** host:port, or a port alone on loopback. Throws ConfigError. */
export function addressOf(text: string): { host: string; port: number } {
  const [, host = "127.0.0.1", digits = ""] = /^(?:(\[[\da-f:.]+\]|[^:]+):)?(\d{1,5})$/i.exec(text) ?? [];
  const port = digits === "" ? Number.NaN : Number(digits);
  if (port <= 65_535) return { host, port };
  throw new ConfigError(`--http is ${JSON.stringify(text)}: must be host:port, such as 127.0.0.1:7465 or [::1]:0.`);
}

function namesOf({ allowHosts, allowOrigins, publicUrl }: Config, host: string): Names {
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
