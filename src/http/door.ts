import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { cors } from "hono/cors";
import type { Caller, Scope } from "../domain/principal.ts";
import type { Logger } from "../engine/ports.ts";
import { guardsFor, refuse, type Guard, type Names } from "./guards.ts";
import { OpenRequests, rateLimit } from "./limits.ts";
import type { Bindings } from "./listen.ts";

/** The way of a request in: what it must be, who sends it, how much he may ask for, and where it goes. */

export interface Admitted {
  readonly caller: Caller;
  /** How he was known: the answer to a lack of scope differs. */
  readonly kind: "open" | "token" | "oauth";
}

export interface DoorOptions {
  readonly names: Names;
  readonly limits: { readonly rateLimit: number; readonly maxStreams: number; readonly maxBodyBytes: number };
  /** Who sends a request; the answer to one who must not come in. */
  readonly authenticate: (request: Request) => Promise<Admitted | Response>;
  readonly insufficientScope: (scope: Scope) => Response;
  /** OAuth metadata of this server; undefined where there is no authorization server. */
  readonly resourceMetadata: () => object | undefined;
  /** Serves the protocol. */
  readonly mcp: (request: Request, entry: { caller: Caller; body: unknown }) => Promise<Response>;
  /** The scope that a message needs, of those that an OAuth client can ask for more of. */
  readonly scopeOf: (body: unknown) => Scope | undefined;
  readonly health: { live(): Response; ready(): Promise<Response> };
  readonly metrics: DoorMetrics & { text(): Promise<string>; readonly contentType: string };
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

/** Why a request was refused at the door. */
export type Reason = Guard["about"] | "unauthenticated" | "scope" | "rate" | "open_requests" | "body_size";

/** What is counted of requests. */
export interface DoorMetrics {
  /** The returned function is called when the answer has been sent, or its client is gone. */
  began(route: string, method: string): (status: number) => void;
  refused(reason: Reason): void;
}

type Env = { Bindings: Bindings };

/** Of requests without a valid token an address may make so large a share of the rate. */
const STRANGERS = 0.1;

export function createDoor(options: DoorOptions): Hono<Env> {
  const { health, metrics, names } = options;
  const app = new Hono<Env>();
  const guards = guardsFor(names);
  app.use(async (context, next) => {
    follow(context, metrics);
    for (const { about, refusal } of guards) {
      const refused = refusal(context.req.raw);
      if (!refused) continue;
      metrics.refused(about);
      return refused;
    }
    await next();
    return undefined;
  });
  // Only pages of named origins come so far with an Origin of their own: they may read the answers.
  app.use(cors({ origin: (origin) => origin, exposeHeaders: ["Mcp-Session-Id", "WWW-Authenticate", "Retry-After"] }));
  app.get("/healthz", () => health.live());
  app.get("/readyz", async () => health.ready());
  app.on("GET", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"], (context) => {
    const metadata = options.resourceMetadata();
    return metadata ? context.json(metadata) : context.notFound();
  });
  const enter = entrance(options);
  app.get("/metrics", async (context) => {
    const admitted = await enter(context, "admin");
    if (admitted instanceof Response) return admitted;
    return context.body(await metrics.text(), 200, { "Content-Type": metrics.contentType });
  });
  const sized = bodyLimit({ maxSize: options.limits.maxBodyBytes, onError: () => tooLarge(options) });
  app.all("/mcp", sized, async (context) => serveMcp(context, enter, options));
  app.notFound(() => refuse(404, "not_found", "There is nothing here. MCP is served at /mcp."));
  app.onError((error, context) => {
    options.log.warn("a request failed", { path: context.req.path, error: error.stack ?? error.message });
    return refuse(500, "internal", "The server failed to answer. Its log says why.");
  });
  return app;
}

/** Where metrics tell requests apart; what else somebody asks for is one. */
const ROUTES = new Set(["/mcp", "/metrics", "/healthz", "/readyz"]);

function follow({ env, req }: Context<Env>, metrics: DoorMetrics): void {
  const { outgoing } = env;
  const ended = metrics.began(ROUTES.has(req.path) ? req.path : "other", req.method);
  outgoing.once("close", () => ended(outgoing.statusCode));
}

type Enter = (context: Context<Env>, needs: Scope) => Promise<Admitted | Response>;

/** Who comes in has shown who he is and stays within his limits. */
function entrance({ authenticate, insufficientScope, limits, metrics }: DoorOptions): Enter {
  const ofStrangers = rateLimit(Math.max(1, Math.ceil(limits.rateLimit * STRANGERS)));
  const ofKnown = rateLimit(limits.rateLimit);
  const open = new OpenRequests(limits.maxStreams);
  const refused = (reason: Reason, response: Response): Response => {
    metrics.refused(reason);
    return response;
  };
  return async (context, needs) => {
    const { incoming, outgoing } = context.env;
    const admitted = await authenticate(context.req.raw);
    if (admitted instanceof Response) {
      const tooMany = await ofStrangers(incoming.socket.remoteAddress ?? "");
      return tooMany ? refused("rate", tooMany) : refused("unauthenticated", admitted);
    }
    const { principal, scopes } = admitted.caller;
    if (!scopes.includes(needs)) return refused("scope", insufficientScope(needs));
    const tooMany = await ofKnown(principal);
    if (tooMany) return refused("rate", tooMany);
    const tooManyOpen = open.refusal(principal);
    if (tooManyOpen) return refused("open_requests", tooManyOpen);
    outgoing.once("close", open.began(principal));
    return admitted;
  };
}

async function serveMcp(context: Context<Env>, enter: Enter, options: DoorOptions): Promise<Response> {
  const admitted = await enter(context, "read");
  if (admitted instanceof Response) return admitted;
  const { caller, kind } = admitted;
  const body = context.req.method === "POST" ? parsed(await context.req.text()) : undefined;
  if (body === NOT_JSON) return notJson();
  // A client of an authorization server can get more; any other is told by the tool that it may not.
  const needs = kind === "oauth" ? options.scopeOf(body) : undefined;
  if (needs !== undefined && !caller.scopes.includes(needs)) {
    options.metrics.refused("scope");
    return options.insufficientScope(needs);
  }
  return options.mcp(context.req.raw, { caller, body });
}

const NOT_JSON = Symbol("not JSON");

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

function notJson(): Response {
  const error = { code: -32_700, message: "Parse error: the body is not JSON." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

function tooLarge({ limits, metrics }: DoorOptions): Response {
  metrics.refused("body_size");
  const most = String(limits.maxBodyBytes);
  return refuse(413, "body_too_large", `The body has more than ${most} bytes (--max-body-bytes). Send less at once.`);
}
