import { Hono, type Context } from "hono";
import { cors } from "hono/cors";
import type { Caller, Scope } from "../domain/principal.ts";
import { answer } from "../engine/actions/answering.ts";
import { get } from "../engine/actions/reading.ts";
import type { Logger } from "../engine/ports.ts";
import { isAuthenticated, type Authenticated } from "./auth/authenticated.ts";
import { readJson, type Body } from "./json-body.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import { guardsFor, refuse, type Guard, type AllowedNames } from "./request-guards.ts";
import { type Connections, OpenRequests, rateLimit } from "./http-limits.ts";
import type { Bindings } from "./listen.ts";
import type { RequestEndpoint } from "./permission-requests.ts";
import { CARD_MAX_AGE, CARD_PATHS, CARD_TYPE } from "./server-card.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

export interface HttpAppOptions {
  readonly names: AllowedNames;
  readonly limits: { readonly rateLimit: number; readonly maxStreams: number; readonly maxBodyBytes: number };
  readonly auth: Pick<Authenticator, "authenticate" | "insufficientScope" | "protectedResourceMetadata">;
  /** Serves MCP. */
  readonly mcp: (request: Request, entry: { caller: Caller; body: unknown }) => Promise<Response>;
  /** Resolves to a scope that the request needs and the caller lacks. */
  readonly scopeMissing: (caller: Caller, body: unknown) => Promise<Scope | undefined>;
  /** True if a message calls a tool that accepts images. */
  readonly takesAttachments: (body: unknown) => Promise<boolean>;
  /** Shows and answers permission requests for receivers of the webhook. */
  readonly requests: RequestEndpoint;
  /** Mounts the console behind `authenticate`; `undefined` without a console. */
  readonly console: ((app: Hono<Env>, authenticate: Authenticate) => void) | undefined;
  /** Returns the server card, as an object for JSON. */
  readonly card: () => object;
  readonly health: { live(): Response; ready(): Promise<Response> };
  readonly metrics: HttpMetrics & { text(): Promise<string>; readonly contentType: string };
  readonly audit: AuditRefusal | undefined;
  readonly connections: Pick<Connections, "markAuthenticated">;
  readonly log: Pick<Logger, "warn">;
}

/** Reason to refuse a request. */
export type Reason = Guard["about"] | "unauthenticated" | "scope" | "rate" | "open_requests" | "body_size";

export interface HttpMetrics {
  /** Counts the start of a request. The returned function must be called when the response was sent or the client has left. */
  began(path: string, method: string): (status: number) => void;
  refused(reason: Reason): void;
}

/** Records refused requests in the audit log. */
export type AuditRefusal = (refusal: { principal: string; reason: Reason; address: string }) => void;

export type Env = { Bindings: Bindings };

/** Share of the rate limit for requests without a valid token, per address. */
const ANONYMOUS_RATE_SHARE = 0.1;

export function createHttpApp(options: HttpAppOptions): Hono<Env> {
  const { health, metrics, names } = options;
  const app = new Hono<Env>();
  const guards = guardsFor(names);
  app.use(async (context, next) => {
    countRequest(context, metrics);
    for (const { about, refusal } of guards) {
      const refused = refusal(context.req.raw);
      if (!refused) continue;
      metrics.refused(about);
      return refused;
    }
    await next();
    return undefined;
  });
  // Reflects any `Origin`, because `knownOrigin` has refused pages that may not read the responses.
  app.use(cors({ origin: (origin) => origin, exposeHeaders: ["Mcp-Session-Id", "WWW-Authenticate", "Retry-After"] }));
  app.get("/healthz", () => health.live());
  app.get("/readyz", async () => health.ready());
  app.on("GET", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"], (context) => {
    const metadata = options.auth.protectedResourceMetadata();
    return metadata ? context.json(metadata) : context.notFound();
  });
  const cardHeaders = { "Content-Type": CARD_TYPE, "Cache-Control": `public, max-age=${String(CARD_MAX_AGE)}` };
  app.on("GET", CARD_PATHS, (context) => context.body(JSON.stringify(options.card()), 200, cardHeaders));
  const { authenticate, ...limits } = createAuthentication(options);
  app.get("/metrics", async (context) => {
    const authenticated = await authenticate(context, "admin");
    if (!isAuthenticated(authenticated)) return authenticated;
    return context.body(await metrics.text(), 200, { "Content-Type": metrics.contentType });
  });
  app.all("/mcp", async (context) => serveMcp(context, { authenticate, ...limits }, options));
  app.on(["GET", "POST"], REQUEST_ROUTE, async (context) => serveRequest(context, authenticate, options));
  options.console?.(app, authenticate);
  app.notFound(() => refuse(404, "not_found", "There is nothing here. MCP is served at /mcp."));
  app.onError((error, context) => {
    options.log.warn("a request failed", { path: context.req.path, error: error.stack ?? error.message });
    return refuse(500, "internal", "The server failed to answer. Its log has the reason.");
  });
  return app;
}

/** Route of a permission request. */
const REQUEST_ROUTE = "/requests/:sessionId/:requestId";

function countRequest({ env, req }: Context<Env>, metrics: HttpMetrics): void {
  const { outgoing } = env;
  const ended = metrics.began(req.path, req.method);
  outgoing.once("close", () => ended(outgoing.statusCode));
}

/** Maximum bytes of a message without attachments. The longest prompt fits, in any script. */
const MAX_PLAIN_BYTES = 8_388_608;

/**
 * Takes in `needs` a scope that the caller must have, or a list of alternatives; `credentials` replaces the request as the
 * source of the caller's identity, or is a caller already authenticated otherwise.
 */
export type Authenticate = (
  context: Context<Env>,
  needs: Scope | readonly Scope[],
  credentials?: Request | Authenticated,
) => Promise<Authenticated | Response>;

/** Counts further requests of an authenticated caller against the rate limit. Resolves to the refusal if there are too many. */
type CountAlso = (context: Context<Env>, caller: Caller, requests: number) => Promise<Response | undefined>;

/** Takes an authenticated request out of the limit of open requests, because it stays open for as long as its client likes. */
type Exempt = (context: Context<Env>) => void;

/** Returns functions that authenticate a request and apply the limits of its caller. */
function createAuthentication({ audit, auth, connections, limits, metrics }: HttpAppOptions): {
  authenticate: Authenticate;
  countAlso: CountAlso;
  exempt: Exempt;
} {
  const anonymousRate = rateLimit(Math.max(1, Math.ceil(limits.rateLimit * ANONYMOUS_RATE_SHARE)));
  const principalRate = rateLimit(limits.rateLimit);
  const open = new OpenRequests(limits.maxStreams);
  const ends = new WeakMap<Bindings["outgoing"], () => void>();
  const refusing =
    (context: Context<Env>) =>
    (reason: Reason, response: Response, principal = "") => {
      metrics.refused(reason);
      audit?.({ principal, reason, address: addressOf(context) });
      return response;
    };
  const countAlso: CountAlso = async (context, { principal }, requests) => {
    const tooMany = await principalRate(principal, requests);
    return tooMany && refusing(context)("rate", tooMany, principal);
  };
  const authenticate: Authenticate = async (context, needs, credentials = context.req.raw) => {
    const { outgoing } = context.env;
    const refused = refusing(context);
    const authenticated = "caller" in credentials ? credentials : await auth.authenticate(credentials);
    if (!isAuthenticated(authenticated)) {
      const tooMany = await anonymousRate(addressOf(context));
      return tooMany ? refused("rate", tooMany) : refused("unauthenticated", authenticated);
    }
    const { principal, scopes } = authenticated.caller;
    connections.markAuthenticated(context.env.incoming.socket);
    if (![needs].flat().some((scope) => scopes.includes(scope)))
      return refused("scope", auth.insufficientScope(needs), principal);
    const tooMany = await principalRate(principal);
    if (tooMany) return refused("rate", tooMany, principal);
    const tooManyOpen = open.refusal(principal);
    if (tooManyOpen) return refused("open_requests", tooManyOpen, principal);
    const end = once(open.began(principal));
    ends.set(outgoing, end);
    outgoing.once("close", end);
    if (authenticated.expiresAt !== undefined) endAt(outgoing, authenticated.expiresAt);
    if (authenticated.kind === "token" && "headers" in credentials) endWhenRefused(outgoing, credentials, auth);
    return authenticated;
  };
  return { authenticate, countAlso, exempt: ({ env }) => ends.get(env.outgoing)?.() };
}

function once(run: () => void): () => void {
  let isOver = false;
  return () => {
    if (!isOver) run();
    isOver = true;
  };
}

function addressOf({ env }: Context<Env>): string {
  return env.incoming.socket.remoteAddress ?? "";
}

/** Ends the response when the caller's token expires. `at`: ms since the epoch. */
function endAt(outgoing: Bindings["outgoing"], at: number): void {
  const timer = setTimeout(() => outgoing.destroy(), Math.min(at - Date.now(), MAX_TIMER_MS)).unref();
  outgoing.once("close", () => clearTimeout(timer));
}

/** Interval of looks for a revoked token, ms. */
const REVOKED_LOOK_MS = 2_000;

/** Ends the response soon after the operator has revoked the token of its request. */
function endWhenRefused(
  outgoing: Bindings["outgoing"],
  { headers }: Pick<Request, "headers">,
  auth: HttpAppOptions["auth"],
): void {
  const look = async () => isAuthenticated(await auth.authenticate({ headers })) || outgoing.destroy();
  const timer = setInterval(() => void look().catch(() => undefined), REVOKED_LOOK_MS).unref();
  outgoing.once("close", () => clearInterval(timer));
}

async function serveMcp(
  context: Context<Env>,
  { authenticate, countAlso, exempt }: ReturnType<typeof createAuthentication>,
  options: HttpAppOptions,
): Promise<Response> {
  const authenticated = await authenticate(context, "read");
  if (!isAuthenticated(authenticated)) return authenticated;
  const { caller, kind } = authenticated;
  const read = await readMessageBody(context, options);
  if (read instanceof Response) return read;
  const { bytes, value: body } = read;
  if (bytes > MAX_PLAIN_BYTES && !(await options.takesAttachments(body))) return tooLarge(options);
  const tooMany = Array.isArray(body) ? await countAlso(context, caller, body.length - 1) : undefined;
  if (tooMany) return tooMany;
  // Answers 403 only to OAuth clients, because they can request more scopes. For other clients, the tool reports the missing
  // scope.
  const missing = kind === "oauth" ? await options.scopeMissing(caller, body) : undefined;
  if (missing !== undefined) {
    options.metrics.refused("scope");
    options.audit?.({ principal: caller.principal, reason: "scope", address: addressOf(context) });
    return options.auth.insufficientScope(missing);
  }
  if (isEventStream(body)) exempt(context);
  return options.mcp(context.req.raw, { caller, body });
}

/** True for a request that the Events extension exempts from limits on open requests. The MCP server has a limit of its own. */
function isEventStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "events/stream";
}

async function serveRequest(
  context: Context<Env>,
  authenticate: Authenticate,
  options: HttpAppOptions,
): Promise<Response> {
  const { requests } = options;
  const isAnswer = context.req.method === "POST";
  const authenticated = await authenticate(context, isAnswer ? answer.scope : [get.scope, answer.scope]);
  if (!isAuthenticated(authenticated)) return authenticated;
  const { requestId = "", sessionId = "" } = context.req.param();
  if (!isAnswer) return requests.look(authenticated.caller, { sessionId, requestId });
  const body = await readRequestBody(context, options);
  if ("refusal" in body) return body.refusal;
  if ("notJson" in body) return refuse(400, "invalid_request", "The body is not JSON.");
  return requests.answer(authenticated.caller, { sessionId, requestId }, body.value);
}

async function readMessageBody(
  context: Context<Env>,
  options: HttpAppOptions,
): Promise<Response | { bytes: number; value: unknown }> {
  if (context.req.method !== "POST") return { bytes: 0, value: undefined };
  const read = await readRequestBody(context, options);
  if ("refusal" in read) return read.refusal;
  return "notJson" in read || read.bytes === 0 ? notJson() : read;
}

async function readRequestBody({ req }: Context<Env>, { limits, metrics }: HttpAppOptions): Promise<Body> {
  const body = await readJson(req.raw, limits.maxBodyBytes);
  if ("refusal" in body) metrics.refused("body_size");
  return body;
}

function notJson(): Response {
  const error = { code: -32_700, message: "Parse error: the body is not JSON." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

function tooLarge({ metrics }: HttpAppOptions): Response {
  metrics.refused("body_size");
  const problem = `The body has more than ${String(MAX_PLAIN_BYTES)} bytes, and calls no tool that takes attachments.`;
  return refuse(413, "body_too_large", `${problem} Send less at once.`);
}
