import { randomBytes } from "node:crypto";
import type { Context, Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Scope } from "../domain/principal.ts";
import { isAuthenticated, type Authenticated } from "../http/auth/authenticated.ts";
import { readJson } from "../http/body.ts";
import { refuse } from "../http/guards.ts";
import type { Authenticate, Env } from "../http/http-app.ts";

/** Sign-in to the page: with a token of this server, whose rights the page then has. */

export interface PeopleOptions {
  readonly authenticate: Authenticate;
  /** Where clients reach the server. */
  readonly publicUrl: () => string;
  /** Told of who has signed in. */
  readonly onSignIn: (principal: string) => void;
}

export function mountSignIn(app: Hono<Env>, path: string, options: PeopleOptions): void {
  app.post(`${path}/sign-in`, async (context) => signIn(context, options));
  app.post(`${path}/sign-out`, (context) => {
    deleteCookie(context, cookieName(context), { path: cookiePath(options) });
    return context.json({ ok: true });
  });
}

/** Cookies are shared by all ports of a host: each server has one of its own. */
function cookieName({ req }: Context<Env>): string {
  return `claude-agents-mcp-${(req.header("host") ?? "").toLowerCase().replaceAll(/[^a-z\d]+/g, "-")}`;
}

function cookiePath({ publicUrl }: PeopleOptions): string {
  return `${new URL(publicUrl()).pathname.replace(/\/+$/, "")}/console`;
}

const COOKIE_MAX_AGE_S = 30 * 86_400;

/** A stranger may send no more, bytes. */
const TOKEN_BYTES = 65_536;

async function signIn(context: Context<Env>, options: PeopleOptions): Promise<Response> {
  const read = await readJson(context.req.raw, TOKEN_BYTES);
  if ("refusal" in read) return read.refusal;
  const body = "value" in read ? read.value : undefined;
  const token: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "token") : undefined;
  if (typeof token !== "string" || token.trim() === "")
    return refuse(400, "invalid_request", 'Send {"token": "..."}: a token that clients of this server use.');
  const authenticated = await options.authenticate(context, "read", withToken(context.req.raw, token.trim()));
  if (!isAuthenticated(authenticated)) return authenticated;
  const { cookie, key } = await sealed(token.trim());
  if (cookie.length > MAX_COOKIE)
    return refuse(400, "invalid_request", "The token is too long to be kept by a browser.");
  setCookie(context, cookieName(context), cookie, {
    path: cookiePath(options),
    httpOnly: true,
    sameSite: "Strict",
    secure: options.publicUrl().startsWith("https:"),
    maxAge: COOKIE_MAX_AGE_S,
  });
  options.onSignIn(authenticated.caller.principal);
  return context.json({ key });
}

/** What browsers take of one. */
const MAX_COOKIE = 3_800;

/** Who makes a request of the console. */
export interface Visitor extends Authenticated {
  /** A person has signed in to the page that sends it: with the cookie of their browser and the key of the page. */
  readonly isSignedIn: boolean;
}

/** Not by instanceof, as `isAuthenticated`. */
export function isVisitor(result: Visitor | Response): result is Visitor {
  return "caller" in result;
}

/** The caller of a request of the page, or of a program that has sent its token itself. */
export async function admit(
  context: Context<Env>,
  needs: Scope,
  options: Pick<PeopleOptions, "authenticate">,
): Promise<Visitor | Response> {
  const authenticate = async (isSignedIn: boolean, credentials: Request): Promise<Visitor | Response> => {
    const authenticated = await options.authenticate(context, needs, credentials);
    // Without tokens there are no sign-ins.
    return isAuthenticated(authenticated)
      ? { ...authenticated, isSignedIn: isSignedIn && authenticated.kind !== "open" }
      : authenticated;
  };
  const { raw } = context.req;
  const cookie = getCookie(context, cookieName(context));
  const key = context.req.header("x-console-key");
  if (raw.headers.has("authorization") || cookie === undefined || key === undefined) {
    return authenticate(false, raw);
  }
  const token = await opened({ cookie, key });
  return token === undefined ? authenticate(false, raw) : authenticate(true, withToken(raw, token));
}

function withToken({ url }: Request, token: string): Request {
  return new Request(url, { headers: { authorization: `Bearer ${headerSafe(token)}` } });
}

/** What no header can hold is no token either. */
function headerSafe(token: string): string {
  return /^[\x21-\x7e]+$/.test(token) ? token : "-";
}

/**
 * A page signs in with a token and keeps neither it nor anything that stands for it: the token goes into a cookie, encrypted
 * with a key that only the page has. Cookies of 127.0.0.1 go to every port of it, and this one alone is worth nothing there;
 * and no other site can send the key. Nothing is kept here, so that a server started anew knows its people, and one that no
 * longer knows the token does not.
 */

/** What a page keeps and what its browser does. */
interface Halves {
  /** For the header `X-Console-Key`. */
  readonly key: string;
  readonly cookie: string;
}

const KEY_BYTES = 32;

export async function sealed(token: string): Promise<Halves> {
  const { CompactEncrypt } = await import("jose");
  const key = randomBytes(KEY_BYTES);
  const cookie = await new CompactEncrypt(new TextEncoder().encode(token))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
    .encrypt(key);
  return { key: key.toString("base64url"), cookie };
}

/** The token; undefined where the two do not belong together. */
export async function opened({ cookie, key }: Halves): Promise<string | undefined> {
  const bytes = Buffer.from(key, "base64url");
  if (bytes.length !== KEY_BYTES) return undefined;
  const { compactDecrypt, errors } = await import("jose");
  try {
    const algorithms = { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] };
    const { plaintext } = await compactDecrypt(cookie, bytes, algorithms);
    return new TextDecoder().decode(plaintext);
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}
