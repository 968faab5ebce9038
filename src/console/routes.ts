import type { Hono, Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { ConsoleApi, Route } from "./api.ts";
import type { Send } from "./live.ts";
import { AppError, invalidArgument } from "../domain/error.ts";
import type { Caller } from "../domain/principal.ts";
import { answer as answerAction } from "../engine/actions/answering.ts";
import { describeAction } from "../engine/actions/audit.ts";
import { events } from "../engine/actions/reading.ts";
import type { Logger } from "../engine/ports.ts";
import { readJson } from "../http/json-body.ts";
import { refuse } from "../http/request-guards.ts";
import type { Env } from "../http/http-app.ts";
import { refusalReply } from "../http/error-reply.ts";
import type { RequestEndpoint } from "../http/permission-requests.ts";
import { SAFE_HEADERS, type Page } from "./page.ts";
import { mountRequestPage, type RequestPageOptions } from "./request-page.ts";
import { admit, isVisitor, mountSignIn, type SignInOptions } from "./sign-in.ts";

/** Routes below `/console`: the page, its sign-in and its API. */

export interface ConsoleRouteOptions
  extends Omit<SignInOptions, "onSignIn">, Pick<RequestPageOptions, "linkedRequests" | "links"> {
  readonly api: ConsoleApi;
  readonly page: Page;
  /** Handles answers to permission requests. */
  readonly requests: RequestEndpoint;
  readonly maxBodyBytes: number;
  /** Records done and refused actions. */
  readonly audit: ((entry: ConsoleAuditEntry) => void) | undefined;
  /** Aborts when the server is about to stop; `live` sends `bye` then. */
  readonly leaving: AbortSignal;
  readonly log: Pick<Logger, "warn">;
}

export interface ConsoleAuditEntry {
  readonly principal: string;
  readonly action: string;
  readonly sessionId?: string;
  readonly requestId?: string;
  readonly permissionMode?: string;
  readonly outcome: string;
}

const API = "/console/api";

export function mountConsole(app: Hono<Env>, options: ConsoleRouteOptions): void {
  app.get("/", (context) => context.redirect("console/"));
  app.get("/console", (context) => context.redirect(`${context.req.path.split("/").at(-1) ?? ""}/`));
  app.use("/console/*", async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(SAFE_HEADERS)) context.res.headers.set(name, value);
  });
  const onSignIn = (principal: string) => options.audit?.({ principal, action: "sign-in", outcome: "ok" });
  mountSignIn(app, API, { ...options, onSignIn });
  mountRequestPage(app, `${API}/links`, options);
  for (const route of options.api.routes) {
    app.on(route.method, API + route.path, async (context) => serve(context, route, options));
  }
  app.post(`${API}/sessions/:id/requests/:request`, async (context) => answer(context, options));
  app.get(`${API}/live`, async (context) => live(context, options));
  app.get("/console/*", async (context) => {
    const path = context.req.path.slice("/console/".length);
    const file = await options.page(context.req.raw, path);
    if (file) return file;
    if (context.req.header("accept")?.includes("text/html") === true)
      return context.redirect(pageAddress(context.req.url));
    return refuse(404, "not_found", "There is no such page. Go to /console/.");
  });
}

/** Relative address of `url` with the missing `#`. Relative, because a proxy may serve `/console` below a path prefix. */
function pageAddress(url: string): string {
  const [, path = ""] = new URL(url).pathname.split("/console/");
  return `./${"../".repeat(path.split("/").length - 1)}#/${path}`;
}

async function serve(context: Context<Env>, route: Route, options: ConsoleRouteOptions): Promise<Response> {
  const authenticated = await admit(context, route.scope, options);
  if (!isVisitor(authenticated)) return authenticated;
  const { caller } = authenticated;
  const params = context.req.param();
  const { action } = route;
  let about: AuditFields = params["id"] === undefined ? {} : { sessionId: params["id"] };
  try {
    const read = action !== undefined ? await readJson(context.req.raw, options.maxBodyBytes) : undefined;
    if (read && "refusal" in read) return read.refusal;
    if (read && "notJson" in read) throw invalidArgument("body", "is not JSON.");
    const body = read?.value;
    about = { ...auditFieldsOf(body), ...about };
    const query = new URL(context.req.url).searchParams;
    const answered = await route.handle({ caller, params, query, body });
    writeAudit(route, caller, { ...about, ...startedSession(answered), outcome: "ok" }, options);
    return Response.json(answered, NO_STORE);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { outcome, response } = refusalReply(error);
    writeAudit(route, caller, { ...about, outcome }, options);
    return response;
  }
}

/** Prevents caching, because answers describe the present state. */
const NO_STORE = { headers: { "cache-control": "no-store" } };

/** Fields of an audit entry, taken from the path, the body or the answer. */
type AuditFields = Pick<ConsoleAuditEntry, "permissionMode" | "requestId" | "sessionId">;

function auditFieldsOf(body: unknown): AuditFields {
  const { permissionMode, requestId } = describeAction(body);
  return { ...(requestId !== undefined && { requestId }), ...(permissionMode !== undefined && { permissionMode }) };
}

/** Takes `sessionId` from the answer if the request has started a session. */
function startedSession({ sessionId }: { readonly sessionId?: unknown }): AuditFields {
  return typeof sessionId === "string" ? { sessionId } : {};
}

/** Writes an audit entry for a route with an `action`. Never records texts of prompts and answers. */
function writeAudit(
  { action }: Route,
  { principal }: Caller,
  about: AuditFields & Pick<ConsoleAuditEntry, "outcome">,
  { audit }: ConsoleRouteOptions,
): void {
  if (action !== undefined) audit?.({ principal, action, ...about });
}

async function answer(context: Context<Env>, options: ConsoleRouteOptions): Promise<Response> {
  const authenticated = await admit(context, answerAction.scope, options);
  if (!isVisitor(authenticated)) return authenticated;
  const { caller, isSignedIn } = authenticated;
  const { id, request } = context.req.param();
  const read = await readJson(context.req.raw, options.maxBodyBytes);
  if ("refusal" in read) return read.refusal;
  const body = "value" in read ? read.value : undefined;
  return options.requests.answer(caller, { sessionId: id ?? "", requestId: request ?? "" }, body, isSignedIn);
}

/** Interval between comments on the stream of `live`, ms, so that proxies keep a quiet connection open. */
const KEEPALIVE_MS = 15_000;

async function live(context: Context<Env>, options: ConsoleRouteOptions): Promise<Response> {
  const authenticated = await admit(context, events.scope, options);
  if (!isVisitor(authenticated)) return authenticated;
  const source = openLive(context, authenticated.caller, options);
  if (source instanceof Response) return source;
  context.header("cache-control", "no-store");
  context.header("x-accel-buffering", "no");
  return streamSSE(context, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    // Ends the stream of a HEAD request, whose body is never read.
    context.env.outgoing.once("close", () => stream.abort());
    const signal = AbortSignal.any([gone.signal, options.leaving]);
    const send: Send = async (event, data, id) =>
      stream.writeSSE({ event, data: JSON.stringify(data), ...(id !== undefined && { id: String(id) }) });
    const alive = setInterval(() => void stream.write(": here\n\n").catch(() => gone.abort()), KEEPALIVE_MS);
    try {
      await source(send, signal);
      if (options.leaving.aborted) await send("bye", {});
    } catch (error) {
      if (!gone.signal.aborted) options.log.warn("events cannot be sent to a page", { error: String(error) });
    } finally {
      clearInterval(alive);
    }
  });
}

function openLive({ req }: Context<Env>, caller: Caller, { api }: ConsoleRouteOptions) {
  try {
    return api.live(caller, new URL(req.url).searchParams);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return refusalReply(error).response;
  }
}
