import { dirname, join, resolve } from "node:path";
import { ConfigError } from "../../config/error.ts";
import { OPERATOR, type Caller, type Scope } from "../../domain/principal.ts";
import type { Logger } from "../../engine/ports.ts";
import { isInside, findRealPath } from "../../security/paths.ts";
import type { Authenticated, PrincipalSettings } from "./authenticated.ts";
import {
  createChallenges,
  keysUnavailable,
  protectedResource,
  resourceUrl,
  type ProtectedResource,
} from "./challenge.ts";
import { KeysUnavailable, RETRY_MS } from "./issuer-keys.ts";
import { createJwtVerifier, looksLikeJwt, TokenRefused } from "./jwt.ts";
import { isLoopback, isSafeAddress } from "../../config/loopback.ts";
import { digestOf, findHolder, type KnownToken } from "./http-token.ts";
import { makeToken, TokenFile } from "./token-file.ts";

/**
 * Identifies the caller of an HTTP request, by the `Authorization` header alone: the operator's token, a token of a named
 * principal, or a JWT of the authorization server. All three may be in use at once.
 */

export interface AuthSettings {
  /** False makes every caller the operator; allowed on loopback only. */
  readonly auth: boolean;
  /** Listening address or name, without port. */
  readonly host: string;
  /**
   * Returns the URL at which clients reach the server. Called on each use, because a free port is known only after listening.
   */
  readonly publicUrl: () => string;
  /** True if a person uses the clients with the operator's token. */
  readonly attended?: boolean;
  /** File of the operator's token. `undefined` for a file in `stateFolder`, which is created if missing. */
  readonly tokenFile?: string | undefined;
  readonly stateFolder: string;
  /** File with the token of a program that answers requests in the operator's name. */
  readonly decideTokenFile?: string | undefined;
  /** Folders in which sessions work: a session could have written a token file there. */
  readonly workFolders: readonly string[];
  /** Operator's token for this run only; no token file is created or read. */
  readonly runToken?: string | undefined;
  readonly principals: Readonly<Record<string, PrincipalSettings>>;
  /** Authorization server whose JWTs are accepted. */
  readonly oauth?: AuthorizationServer | undefined;
  readonly log: Pick<Logger, "error" | "info">;
}

interface AuthorizationServer {
  readonly issuer: string;
  /** Default: the URL of this server's /mcp. */
  readonly audience?: string;
  /** Default: `jwks_uri` of the issuer's metadata. */
  readonly jwks?: string;
}

interface MadeToken {
  readonly file: string;
  readonly token: string;
}

export interface Authenticator {
  /** Resolves to the caller, or to the refusal: 401, or 503 while a JWT cannot be checked. */
  authenticate(request: Pick<Request, "headers">): Promise<Authenticated | Response>;
  /** 403 for an authenticated caller without `scope`. */
  insufficientScope(scope: Scope | readonly Scope[]): Response;
  /** Metadata by RFC 9728; `undefined` if no authorization server is configured. */
  protectedResourceMetadata(): ProtectedResource | undefined;
  /** The operator's token, if created by this start. */
  readonly made: MadeToken | undefined;
}

/** Throws `ConfigError` if a setting cannot be used. Makes no network requests. */
export async function createAuthenticator(settings: AuthSettings): Promise<Authenticator> {
  const place = { publicUrl: () => settings.publicUrl().replace(/\/+$/, ""), issuer: settings.oauth?.issuer };
  const { insufficient, invalid, missing } = createChallenges(place);
  const answers = {
    insufficientScope: insufficient,
    protectedResourceMetadata: () => protectedResource(place),
  };
  if (!settings.auth) {
    requireLoopback(settings.host);
    const caller = { ...OPERATOR, ...(settings.attended && { attended: true }) };
    const everyone: Authenticated = { caller, kind: "open" };
    return { ...answers, authenticate: async () => Promise.resolve(everyone), made: undefined };
  }
  checkOAuth(settings);
  const verifyJwt = createVerifier(settings, () => settings.oauth?.audience ?? resourceUrl(place.publicUrl()));
  const named = namedTokens(settings.principals);
  const { known, made } = await openOperatorTokens(settings);
  const check = async (token: string): Promise<Authenticated> => {
    const caller = findHolder(token, [...(await known()), ...named]);
    if (caller) return { caller, kind: "token" };
    if (verifyJwt && looksLikeJwt(token)) return verifyJwt(token);
    throw new TokenRefused("This server does not know the token. It may have been changed: ask the server's operator.");
  };
  const authenticate = async ({ headers }: Pick<Request, "headers">): Promise<Authenticated | Response> => {
    const header = headers.get("authorization")?.trim() ?? "";
    if (!/^bearer\b/i.test(header)) return missing();
    const [, token] = BEARER.exec(header) ?? [];
    if (token === undefined) return invalid("Send exactly one Authorization header: Bearer <token>.");
    try {
      return await check(token);
    } catch (error) {
      if (error instanceof TokenRefused) return invalid(error.message);
      if (error instanceof KeysUnavailable) return keysUnavailable(RETRY_MS);
      throw error;
    }
  };
  return { ...answers, authenticate, made };
}

/** Refuses several headers: they arrive joined by commas, which no token contains. */
const BEARER = /^bearer +([\w.~+/-]+=*)$/i;

function requireLoopback(host: string): void {
  if (isLoopback(host)) return;
  const advice = "Leave out --no-auth, or listen on 127.0.0.1.";
  throw new ConfigError(`--no-auth on ${host} would let anyone who can reach it run commands here. ${advice}`);
}

function checkOAuth({ oauth }: AuthSettings): void {
  for (const key of ["issuer", "jwks"] as const) {
    const address = oauth?.[key];
    if (address === undefined || isSafeAddress(address)) continue;
    throw new ConfigError(`--oauth: ${key} is "${address}": must be an https URL (http only on loopback).`);
  }
}

type Verifier = (token: string) => Promise<Authenticated>;

function createVerifier({ log, oauth, principals }: AuthSettings, audience: () => string) {
  if (oauth === undefined) return undefined;
  const terms = new Map(Object.entries(principals));
  const verify: Verifier = createJwtVerifier({
    issuer: oauth.issuer,
    jwks: oauth.jwks,
    audience,
    principals: terms,
    log,
  });
  return verify;
}

function namedTokens(principals: Readonly<Record<string, PrincipalSettings>>): KnownToken<Caller>[] {
  const holders = new Map<string, string>();
  return Object.entries(principals).flatMap(([principal, { attended, scopes, tokenSha256 = [] }]) =>
    [tokenSha256].flat().map((hex) => {
      const other = holders.get(hex);
      if (other !== undefined && other !== principal) {
        throw new ConfigError(`The principals ${other} and ${principal} have the same token. Give each its own.`);
      }
      holders.set(hex, principal);
      return { digest: Buffer.from(hex, "hex"), holder: { principal, scopes, ...(attended && { attended }) } };
    }),
  );
}

/** Cannot start anything, so that the holder decides only on requests of sessions that others have started. */
const DECIDING: Caller = { principal: OPERATOR.principal, scopes: ["read", "approve", "decide"] };

interface OperatorTokens {
  /** Reads the tokens anew, because their files may change at any time. */
  readonly known: () => Promise<KnownToken<Caller>[]>;
  readonly made: MadeToken | undefined;
}

async function openOperatorTokens({
  attended,
  decideTokenFile,
  log,
  runToken,
  stateFolder,
  tokenFile,
  workFolders,
}: AuthSettings): Promise<OperatorTokens> {
  const holder: Caller = { ...OPERATOR, ...(attended && { attended }) };
  if (runToken !== undefined) {
    const only = [{ digest: digestOf(runToken), holder }];
    return { known: async () => Promise.resolve(only), made: undefined };
  }
  const path = tokenFile ?? join(stateFolder, "http-token");
  // Requires a given file to exist: a misspelt path would create an unnoticed token.
  const token = tokenFile === undefined ? await makeToken(path) : undefined;
  // Exempts the default file, because the state folder is closed to sessions everywhere. A file elsewhere is not protected by
  // servers without this setting.
  if (tokenFile !== undefined) await refuseWithin(workFolders, "--token-file", tokenFile);
  const file = await TokenFile.open(path, log);
  if (decideTokenFile !== undefined) await refuseWithin(workFolders, "--decide-token-file", decideTokenFile);
  const deciding = decideTokenFile === undefined ? undefined : await TokenFile.open(decideTokenFile, log);
  const known = async () => {
    const digest = await file.digest();
    const decides = await deciding?.digest();
    return [...(digest ? [{ digest, holder }] : []), ...(decides ? [{ digest: decides, holder: DECIDING }] : [])];
  };
  return { known, made: token === undefined ? undefined : { file: path, token } };
}

async function refuseWithin(folders: readonly string[], flag: string, file: string): Promise<void> {
  const places = [resolve(file), await findRealPath(resolve(file))];
  // Skips the root of the file system, because every token file is inside.
  for (const folder of folders.filter((each) => dirname(resolve(each)) !== resolve(each))) {
    const roots = [resolve(folder), (await findRealPath(resolve(folder))) ?? folder];
    if (!places.some((place) => place !== undefined && roots.some((root) => isInside(place, root)))) continue;
    const advice = "Move it elsewhere, and create another token.";
    throw new ConfigError(`${flag}: ${file} is in ${folder}, where sessions can have written it. ${advice}`);
  }
}

/** Text for the operator after the server has created a token: its file, and how to configure clients. */

interface FirstStart {
  /** URL of /mcp for clients. */
  readonly url: string;
  /** False if the output is stored, as by systemd: then the token appears in its file only. */
  readonly showToken: boolean;
}

/** Returns complete lines. Meant for a person, so written to stderr and not to the logger. */
export function firstStartText({ file, token }: MadeToken, { showToken, url }: FirstStart): string {
  const shown = showToken ? token : "<token>";
  const authorization = `Bearer ${shown}`;
  const client = { type: "http", url, headers: { Authorization: authorization } };
  const where = showToken ? "It is shown only once;" : "Replace <token> with it;";
  return [
    `claude-agents-mcp created a token that each client must send. It is in ${file}, readable only by you.`,
    `${where} anyone who has it can do everything that this server offers.`,
    "",
    "Claude Code:",
    "",
    `  claude mcp add --transport http claude-agents-mcp ${url} --header "Authorization: ${authorization}"`,
    "",
    "Clients with a JSON configuration file:",
    "",
    ...JSON.stringify({ mcpServers: { "claude-agents-mcp": client } }, null, 2)
      .split("\n")
      .map((line) => `  ${line}`),
    "",
    "Tokens for others, with fewer scopes: claude-agents-mcp token. More: docs/http.md.",
    "",
  ].join("\n");
}
