import { Hono, type Context } from "hono";
import { cors } from "hono/cors";
import type { Caller, Scope } from "../domain/principal.ts";
import { answer } from "../engine/actions/approving.ts";
import { get } from "../engine/actions/reading.ts";
import type { Logger } from "../engine/ports.ts";
import { isAdmitted, type Admitted } from "./auth/admitted.ts";
import { readJson, type Body } from "./body.ts";
import type { Authenticator } from "./auth/authenticator.ts";
import { guardsFor, refuse, type Guard, type Names } from "./guards.ts";
import type { Connections } from "./connections.ts";
import { OpenRequests, rateLimit } from "./limits.ts";
import type { Bindings } from "./listen.ts";
import type { Requests } from "./requests.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/** The way of a request in: what it must be, who sends it, how much he may ask for, and where it goes. */

export interface DoorOptions {
  readonly names: Names;
  readonly limits: { readonly rateLimit: number; readonly maxStreams: number; readonly maxBodyBytes: number };
  readonly auth: Pick<Authenticator, "authenticate" | "insufficientScope" | "protectedResourceMetadata">;
  /** Serves the protocol. */
  readonly mcp: (request: Request, entry: { caller: Caller; body: unknown }) => Promise<Response>;
  /** A scope that what is asked for needs and its caller has not. */
  readonly scopeMissing: (caller: Caller, body: unknown) => Promise<Scope | undefined>;
  /** Whether a message calls a tool that images can be sent to. */
  readonly takesAttachments: (body: unknown) => Promise<boolean>;
  /** What is asked, for whom the webhook has told of it. */
  readonly requests: Requests;
  /** The console, where there is one: it mounts itself behind the same entrance. */
  readonly console: ((app: Hono<Env>, enter: Enter) => void) | undefined;
  readonly health: { live(): Response; ready(): Promise<Response> };
  readonly metrics: DoorMetrics & { text(): Promise<string>; readonly contentType: string };
  readonly audit: AuditRefusal | undefined;
  readonly connections: Pick<Connections, "know">;
  readonly log: Pick<Logger, "warn">;
}

/** Why a request was refused at the door. */
export type Reason = Guard["about"] | "unauthenticated" | "scope" | "rate" | "open_requests" | "body_size";

/** What is counted of requests. */
export interface DoorMetrics {
  /** The returned function is called when the answer has been sent, or its client is gone. */
  began(path: string, method: string): (status: number) => void;
  refused(reason: Reason): void;
}

/** Takes down who was refused, where the operator wants to know. */
export type AuditRefusal = (refusal: { principal: string; reason: Reason; address: string }) => void;

export type Env = { Bindings: Bindings };

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
    const metadata = options.auth.protectedResourceMetadata();
    return metadata ? context.json(metadata) : context.notFound();
  });
  const { countAlso, enter } = entrance(options);
  app.get("/metrics", async (context) => {
    const admitted = await enter(context, "admin");
    if (!isAdmitted(admitted)) return admitted;
    return context.body(await metrics.text(), 200, { "Content-Type": metrics.contentType });
  });
  app.all("/mcp", async (context) => serveMcp(context, { enter, countAlso }, options));
  app.on(["GET", "POST"], REQUEST, async (context) => serveRequest(context, enter, options));
  options.console?.(app, enter);
  app.notFound(() => refuse(404, "not_found", "There is nothing here. MCP is served at /mcp."));
  app.onError((error, context) => {
    options.log.warn("a request failed", { path: context.req.path, error: error.stack ?? error.message });
    return refuse(500, "internal", "The server failed to answer. Its log says why.");
  });
  return app;
}

/** One of what is asked. */
const REQUEST = "/requests/:sessionId/:requestId";

function follow({ env, req }: Context<Env>, metrics: DoorMetrics): void {
  const { outgoing } = env;
  const ended = metrics.began(req.path, req.method);
  outgoing.once("close", () => ended(outgoing.statusCode));
}

/** Without attachments a message has at most so many bytes: the longest prompt fits, in any script. */
const PLAIN_BYTES = 8_388_608;

/** `needs` is what a caller must have, or one of these; `authenticated` names him, where the request itself does not. */
export type Enter = (
  context: Context<Env>,
  needs: Scope | readonly Scope[],
  authenticated?: Request,
) => Promise<Admitted | Response>;

/** Counts so many requests more of who has come in already. Resolves with the refusal where they are too many. */
type CountAlso = (context: Context<Env>, caller: Caller, requests: number) => Promise<Response | undefined>;

/** Who comes in has shown who he is and stays within his limits. */
function entrance({ audit, auth, connections, limits, metrics }: DoorOptions): { enter: Enter; countAlso: CountAlso } {
  const ofStrangers = rateLimit(Math.max(1, Math.ceil(limits.rateLimit * STRANGERS)));
  const ofKnown = rateLimit(limits.rateLimit);
  const open = new OpenRequests(limits.maxStreams);
  const refusing =
    (context: Context<Env>) =>
    (reason: Reason, response: Response, principal = "") => {
      metrics.refused(reason);
      audit?.({ principal, reason, address: addressOf(context) });
      return response;
    };
  const countAlso: CountAlso = async (context, { principal }, requests) => {
    const tooMany = await ofKnown(principal, requests);
    return tooMany && refusing(context)("rate", tooMany, principal);
  };
  const enter: Enter = async (context, needs, authenticated = context.req.raw) => {
    const { outgoing } = context.env;
    const refused = refusing(context);
    const admitted = await auth.authenticate(authenticated);
    if (!isAdmitted(admitted)) {
      const tooMany = await ofStrangers(addressOf(context));
      return tooMany ? refused("rate", tooMany) : refused("unauthenticated", admitted);
    }
    const { principal, scopes } = admitted.caller;
    connections.know(context.env.incoming.socket);
    if (![needs].flat().some((scope) => scopes.includes(scope)))
      return refused("scope", auth.insufficientScope(needs), principal);
    const tooMany = await ofKnown(principal);
    if (tooMany) return refused("rate", tooMany, principal);
    const tooManyOpen = open.refusal(principal);
    if (tooManyOpen) return refused("open_requests", tooManyOpen, principal);
    outgoing.once("close", open.began(principal));
    if (admitted.expiresAt !== undefined) endAt(outgoing, admitted.expiresAt);
    return admitted;
  };
  return { enter, countAlso };
}

function addressOf({ env }: Context<Env>): string {
  return env.incoming.socket.remoteAddress ?? "";
}

/** Whoever came in by a token hears nothing more when it has run out. `at`: ms since the epoch. */
function endAt(outgoing: Bindings["outgoing"], at: number): void {
  const timer = setTimeout(() => outgoing.destroy(), Math.min(at - Date.now(), MAX_TIMER_MS)).unref();
  outgoing.once("close", () => clearTimeout(timer));
}

async function serveMcp(
  context: Context<Env>,
  { countAlso, enter }: ReturnType<typeof entrance>,
  options: DoorOptions,
): Promise<Response> {
  const admitted = await enter(context, "read");
  if (!isAdmitted(admitted)) return admitted;
  const { caller, kind } = admitted;
  const read = await messageOf(context, options);
  if (read instanceof Response) return read;
  const { bytes, value: body } = read;
  if (bytes > PLAIN_BYTES && !(await options.takesAttachments(body))) return tooLarge(options);
  const tooMany = Array.isArray(body) ? await countAlso(context, caller, body.length - 1) : undefined;
  if (tooMany) return tooMany;
  // A client of an authorization server can get more; any other is told by the tool that it may not.
  const missing = kind === "oauth" ? await options.scopeMissing(caller, body) : undefined;
  if (missing !== undefined) {
    options.metrics.refused("scope");
    options.audit?.({ principal: caller.principal, reason: "scope", address: addressOf(context) });
    return options.auth.insufficientScope(missing);
  }
  return options.mcp(context.req.raw, { caller, body });
}

async function serveRequest(context: Context<Env>, enter: Enter, options: DoorOptions): Promise<Response> {
  const { requests } = options;
  const isAnswer = context.req.method === "POST";
  const admitted = await enter(context, isAnswer ? answer.scope : [get.scope, answer.scope]);
  if (!isAdmitted(admitted)) return admitted;
  const { requestId = "", sessionId = "" } = context.req.param();
  if (!isAnswer) return requests.look(admitted.caller, { sessionId, requestId });
  const body = await bodyOf(context, options);
  if ("refusal" in body) return body.refusal;
  if ("notJson" in body) return refuse(400, "invalid_request", "The body is not JSON.");
  return requests.answer(admitted.caller, { sessionId, requestId }, body.value);
}

async function messageOf(
  context: Context<Env>,
  options: DoorOptions,
): Promise<Response | { bytes: number; value: unknown }> {
  if (context.req.method !== "POST") return { bytes: 0, value: undefined };
  const read = await bodyOf(context, options);
  if ("refusal" in read) return read.refusal;
  return "notJson" in read || read.bytes === 0 ? notJson() : read;
}

async function bodyOf({ req }: Context<Env>, { limits, metrics }: DoorOptions): Promise<Body> {
  const body = await readJson(req.raw, limits.maxBodyBytes);
  if ("refusal" in body) metrics.refused("body_size");
  return body;
}

function notJson(): Response {
  const error = { code: -32_700, message: "Parse error: the body is not JSON." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

function tooLarge({ metrics }: DoorOptions): Response {
  metrics.refused("body_size");
  const problem = `The body has more than ${String(PLAIN_BYTES)} bytes, and calls no tool that takes attachments.`;
  return refuse(413, "body_too_large", `${problem} Send less at once.`);
}
