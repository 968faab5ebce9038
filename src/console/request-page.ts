import type { Context, Hono } from "hono";
import { getCookie } from "hono/cookie";
import { answer } from "../engine/actions/answering.ts";
import { isAuthenticated } from "../http/auth/authenticated.ts";
import type { Env } from "../http/http-app.ts";
import { readJson } from "../http/json-body.ts";
import type { RequestEndpoint } from "../http/permission-requests.ts";
import { refuse } from "../http/request-guards.ts";
import type { ConsoleApi } from "./api.ts";
import type { RequestLink, RequestLinks } from "./request-links.ts";
import { cookieName, keepSealed, openToken, signedInAs, withToken, type SignInOptions } from "./sign-in.ts";

/**
 * API of the page of one request, opened by a link (`RequestLinks`). Each route serves the request of its link alone; the cookie
 * and the key of the page open nothing else.
 */

export interface RequestPageOptions extends Omit<SignInOptions, "onSignIn"> {
  readonly api: Pick<ConsoleApi, "findRequest">;
  /** `undefined` if this server sends no links. */
  readonly links: RequestLinks | undefined;
  /** Handles answers, as those of a form at the client. */
  readonly linkedRequests: Pick<RequestEndpoint, "answer">;
  readonly maxBodyBytes: number;
  /** Records openings, done and refused. */
  readonly audit: ((entry: OpeningEntry) => void) | undefined;
}

interface OpeningEntry {
  readonly principal: string;
  readonly action: "open-link";
  readonly sessionId: string;
  readonly requestId: string;
  readonly outcome: string;
}

type Options = RequestPageOptions & { readonly links: RequestLinks };

/** Separates this cookie from the cookie of a sign-in, so that neither replaces the other. */
const COOKIE = { suffix: "-request" };

/** Maximum body of an opening, bytes: the sender is not authenticated yet. */
const MAX_OPENING_BYTES = 4_096;

export function mountRequestPage(app: Hono<Env>, path: string, { links, ...given }: RequestPageOptions): void {
  if (!links) return;
  const options = { ...given, links };
  app.post(path, async (context) => openLink(context, path, options));
  app.get(`${path}/:id`, async (context) => {
    const link = await admitPage(context, options);
    return "which" in link ? showRequest(link, options) : link;
  });
  app.post(`${path}/:id`, async (context) => {
    const link = await admitPage(context, options);
    if (!("which" in link)) return link;
    const read = await readJson(context.req.raw, options.maxBodyBytes);
    if ("refusal" in read) return read.refusal;
    const { caller, which } = link;
    return options.linkedRequests.answer(caller, which, "value" in read ? read.value : undefined, caller.attended);
  });
}

/** Exchanges the secret of a link for a cookie and a key. Takes POST alone, because programs that preview links send GET. */
async function openLink(context: Context<Env>, path: string, options: Options): Promise<Response> {
  const { audit, links } = options;
  const read = await readJson(context.req.raw, MAX_OPENING_BYTES);
  if ("refusal" in read) return read.refusal;
  const body: unknown = "value" in read ? read.value : undefined;
  const secret: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "link") : undefined;
  const link = links.find(typeof secret === "string" ? secret : "");
  if (!link) return refuseUnknown(context, options);
  const note = (outcome: string) =>
    audit?.({ principal: link.caller.principal, action: "open-link", ...link.which, outcome });
  const user = await signedInAs(context, options);
  const refusal = user !== undefined && user !== link.caller.principal ? FOREIGN : await whyClosed(link, options);
  // Nothing is awaited between this check and `use`, so that two openings at a time cannot both succeed.
  const why = refusal ?? (link.page ? USED : links.hasExpired(link) ? EXPIRED : undefined);
  if (why) {
    note(why.error);
    return refuse(why.status, why.error, why.message, NO_STORE);
  }
  const page = links.use(link);
  note("ok");
  const key = await keepSealed(context, page, { ...COOKIE, path: `${path}/${link.id}` }, options);
  context.header("cache-control", "no-store");
  return context.json({ id: link.id, key });
}

interface Refusal {
  readonly status: number;
  readonly error: string;
  readonly message: string;
}

const AGAIN = "Go back to your client: the next call there that waits for the session sends a new link.";
const UNKNOWN: Refusal = {
  status: 404,
  error: "link_unknown",
  message: `The link is incomplete, or the server was restarted. ${AGAIN}`,
};
const FOREIGN: Refusal = {
  status: 403,
  error: "link_foreign",
  message:
    "The link is for another user than the one who is signed in to the console in this browser. Sign out there, or open the link in another browser.",
};
const USED: Refusal = {
  status: 410,
  error: "link_used",
  message: `The link works once, and was opened before. Answer on the page that has the request. If that page is closed: ${AGAIN}`,
};
const EXPIRED: Refusal = { status: 410, error: "link_expired", message: `The link works for 10 minutes. ${AGAIN}` };

const NO_STORE = { "cache-control": "no-store" };

/** Counts the attempt as a request with a wrong token, against the rate limit of its address. */
async function refuseUnknown(context: Context<Env>, options: Options): Promise<Response> {
  const { error, message, status } = UNKNOWN;
  const counted = await options.authenticate(context, answer.scope, withToken(context.req.raw, "-"));
  const isTooMany = !isAuthenticated(counted) && counted.status === 429;
  return isTooMany ? counted : refuse(status, error, message, NO_STORE);
}

/** Resolves to `undefined` while the request is open. */
async function whyClosed({ caller, which }: RequestLink, { api }: Options): Promise<Refusal | undefined> {
  const found = await api.findRequest(caller, which);
  return "request" in found ? undefined : { status: 410, error: "link_answered", message: found.closed };
}

/** Finds the link of the page that sends its cookie and key, and applies the limits of its principal. */
async function admitPage(context: Context<Env>, options: Options): Promise<RequestLink | Response> {
  const key = context.req.header("x-request-key") ?? "";
  const cookie = getCookie(context, cookieName(context, COOKIE.suffix)) ?? "";
  const secret = await openToken({ cookie, key });
  const link = options.links.findPage(context.req.param("id") ?? "", secret ?? "");
  if (!link) return refuseUnknown(context, options);
  const { error, message, status } = EXPIRED;
  if (options.links.hasExpired(link)) return refuse(status, error, message, NO_STORE);
  const admitted = await options.authenticate(context, answer.scope, { caller: link.caller, kind: "token" });
  return isAuthenticated(admitted) ? link : admitted;
}

async function showRequest({ caller, which }: RequestLink, { api }: Options): Promise<Response> {
  const found = await api.findRequest(caller, which);
  return "request" in found
    ? Response.json(found, { headers: NO_STORE })
    : refuse(410, "link_answered", found.closed, NO_STORE);
}
