import { randomBytes } from "node:crypto";
import type { Context, Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Principal, Scope } from "../domain/principal.ts";
import { isAuthenticated, type Authenticated } from "../http/auth/authenticated.ts";
import { readJson } from "../http/json-body.ts";
import { refuse } from "../http/request-guards.ts";
import type { Authenticate, Env } from "../http/http-app.ts";

/** Sign-in to the page with a token of this server. The page gets the rights of the token. */

export interface SignInOptions {
  readonly authenticate: Authenticate;
  /** URL at which clients reach the server. */
  readonly publicUrl: () => string;
  /** Called after each successful sign-in. */
  readonly onSignIn: (principal: string) => void;
}

export function mountSignIn(app: Hono<Env>, path: string, options: SignInOptions): void {
  app.post(`${path}/sign-in`, async (context) => signIn(context, options));
  app.post(`${path}/sign-out`, (context) => {
    deleteCookie(context, cookieName(context), { path: cookiePath(options, ROOT) });
    return context.json({ ok: true });
  });
}

/** Includes `host` with its port, because browsers share cookies among all ports of a host. */
export function cookieName({ req }: Context<Env>, suffix = ""): string {
  return `claude-agents-mcp-${(req.header("host") ?? "").toLowerCase().replaceAll(/[^a-z\d]+/g, "-")}${suffix}`;
}

const ROOT = "/console";

function cookiePath({ publicUrl }: Pick<SignInOptions, "publicUrl">, path: string): string {
  return new URL(publicUrl()).pathname.replace(/\/+$/, "") + path;
}

const COOKIE_MAX_AGE_S = 30 * 86_400;

/** Maximum body of a sign-in, bytes: the sender is not authenticated yet. */
const MAX_SIGN_IN_BYTES = 65_536;

async function signIn(context: Context<Env>, options: SignInOptions): Promise<Response> {
  const read = await readJson(context.req.raw, MAX_SIGN_IN_BYTES);
  if ("refusal" in read) return read.refusal;
  const body = "value" in read ? read.value : undefined;
  const token: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "token") : undefined;
  if (typeof token !== "string" || token.trim() === "")
    return refuse(400, "invalid_request", 'Send {"token": "..."}: a token that clients of this server use.');
  const authenticated = await options.authenticate(context, "read", withToken(context.req.raw, token.trim()));
  if (!isAuthenticated(authenticated)) return authenticated;
  const key = await keepSealed(context, token.trim(), { path: ROOT, maxAge: COOKIE_MAX_AGE_S }, options);
  if (key === undefined) return refuse(400, "invalid_request", "The token is too long to be kept by a browser.");
  options.onSignIn(authenticated.caller.principal);
  return context.json({ key });
}

interface SealedCookie {
  /** Path for which the browser sends the cookie. */
  readonly path: string;
  /** Seconds. Default: until the browser ends. */
  readonly maxAge?: number;
  readonly suffix?: string;
}

/** Sets a cookie with the encrypted `token`. Resolves to the key; `undefined` if no browser would keep the cookie. */
export async function keepSealed(
  context: Context<Env>,
  token: string,
  { suffix, path, ...given }: SealedCookie,
  options: Pick<SignInOptions, "publicUrl">,
): Promise<string | undefined> {
  const { cookie, key } = await sealToken(token);
  if (cookie.length > MAX_COOKIE) return undefined;
  setCookie(context, cookieName(context, suffix), cookie, {
    ...given,
    path: cookiePath(options, path),
    httpOnly: true,
    sameSite: "Strict",
    secure: options.publicUrl().startsWith("https:"),
  });
  return key;
}

/** Maximum length of a cookie that browsers accept. */
const MAX_COOKIE = 3_800;

/** Authenticated sender of a request to the console. */
export interface Visitor extends Authenticated {
  /** True if a person signed in to the page: the request has the browser's cookie and the page's key in `x-console-key`. */
  readonly isSignedIn: boolean;
}

/** Checks a property instead of `instanceof`, like `isAuthenticated`. */
export function isVisitor(result: Visitor | Response): result is Visitor {
  return "caller" in result;
}

/** Authenticates a request of the page, or of a program that sends its own token in `authorization`. */
export async function admit(
  context: Context<Env>,
  needs: Scope,
  options: Pick<SignInOptions, "authenticate">,
): Promise<Visitor | Response> {
  const authenticate = async (isSignedIn: boolean, credentials: Request): Promise<Visitor | Response> => {
    const authenticated = await options.authenticate(context, needs, credentials);
    // Kind `open` means `--no-auth`: without tokens there is no sign-in.
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
  const token = await openToken({ cookie, key });
  return token === undefined ? authenticate(false, raw) : authenticate(true, withToken(raw, token));
}

/** Resolves to the principal who is signed in to the console in this browser, or whose token the request has. */
export async function signedInAs(
  context: Context<Env>,
  options: Pick<SignInOptions, "authenticate">,
): Promise<Principal | undefined> {
  const isSignedIn = getCookie(context, cookieName(context)) !== undefined && context.req.header("x-console-key");
  if (!isSignedIn && context.req.header("authorization") === undefined) return undefined;
  const visitor = await admit(context, "read", options);
  return isVisitor(visitor) ? visitor.caller.principal : undefined;
}

export function withToken({ url }: Request, token: string): Request {
  return new Request(url, { headers: { authorization: `Bearer ${headerSafe(token)}` } });
}

/** Replaces a token with characters that no header can hold by "-", which is never a valid token. */
function headerSafe(token: string): string {
  return /^[\x21-\x7e]+$/.test(token) ? token : "-";
}

/**
 * Encrypts the token of a sign-in into a cookie; only the page has the key. Neither half is enough: browsers send cookies of
 * 127.0.0.1 to every port, and other sites cannot send the key. The server stores nothing, so a sign-in survives a restart, and
 * ends when `authenticate` no longer accepts the token.
 */

/** Parts of a sign-in: `key` is kept by the page, `cookie` by the browser. */
interface SealedToken {
  /** Value of the header `x-console-key`. */
  readonly key: string;
  readonly cookie: string;
}

const KEY_BYTES = 32;

export async function sealToken(token: string): Promise<SealedToken> {
  const { CompactEncrypt } = await import("jose");
  const key = randomBytes(KEY_BYTES);
  const cookie = await new CompactEncrypt(new TextEncoder().encode(token))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
    .encrypt(key);
  return { key: key.toString("base64url"), cookie };
}

/** Decrypts the token; `undefined` if `key` and `cookie` do not belong together. */
export async function openToken({ cookie, key }: SealedToken): Promise<string | undefined> {
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
