import { join } from "node:path";
import { ConfigError } from "../../config/error.ts";
import { LOCAL_CALLER, type Caller, type Scope } from "../../domain/principal.ts";
import type { Logger } from "../../engine/ports.ts";
import type { Admitted, Terms } from "./admitted.ts";
import { createChallenges, keysUnavailable, protectedResource, resourceUrl } from "./challenge.ts";
import type { ProtectedResource } from "./challenge.ts";
import { KeysUnavailable, RETRY_MS } from "./issuer-keys.ts";
import { createJwtVerifier, looksLikeJwt, TokenRefused } from "./jwt.ts";
import { isLoopback, isSafe } from "../../config/loopback.ts";
import { digestOf, holderOf, type Known } from "./secret.ts";
import { makeToken, TokenFile } from "./token-file.ts";

/**
 * Who makes a request over HTTP. By the Authorization header alone: the operator's own token, a token of a named
 * principal, or a JWT of the authorization server; all of them may be in use at once.
 */

export interface AuthSettings {
  /** False lets everybody be the operator: on loopback only. */
  readonly auth: boolean;
  /** Where the server listens: a name or an address, without port. */
  readonly host: string;
  /** Where clients reach the server. Called with each use: a free port is known only when the server listens. */
  readonly publicUrl: () => string;
  /** The operator's; undefined for one in `stateFolder`, which is made where there is none. */
  readonly tokenFile?: string | undefined;
  readonly stateFolder: string;
  /** The operator's for this run alone: then no file is made or read. */
  readonly runToken?: string | undefined;
  readonly principals: Readonly<Record<string, Terms>>;
  /** An authorization server whose JWTs are taken. */
  readonly oauthIssuer?: string | undefined;
  /** Default: the URL of this server's /mcp. */
  readonly oauthAudience?: string | undefined;
  /** Default: as the issuer's metadata says. */
  readonly oauthJwks?: string | undefined;
  readonly log: Pick<Logger, "error" | "info">;
}

export interface MadeToken {
  readonly file: string;
  readonly token: string;
}

export interface Authenticator {
  /** The caller, or the answer that refuses the request: 401, or 503 while a JWT cannot be checked. */
  authenticate(request: Request): Promise<Admitted | Response>;
  /** 403 for somebody who is known and lacks the scope. */
  insufficientScope(scope: Scope | readonly Scope[]): Response;
  /** RFC 9728; undefined where no authorization server is configured. */
  protectedResourceMetadata(): ProtectedResource | undefined;
  /** The operator's token, when this very start has made it. */
  readonly made: MadeToken | undefined;
}

/** Throws ConfigError when a setting cannot be used. Asks nobody over the network. */
export async function createAuthenticator(settings: AuthSettings): Promise<Authenticator> {
  const place = { publicUrl: () => settings.publicUrl().replace(/\/+$/, ""), issuer: settings.oauthIssuer };
  const { insufficient, invalid, missing } = createChallenges(place);
  const answers = {
    insufficientScope: insufficient,
    protectedResourceMetadata: () => protectedResource(place),
  };
  if (!settings.auth) {
    refuseOpenDoor(settings.host);
    return { ...answers, authenticate: async () => Promise.resolve(ANYBODY), made: undefined };
  }
  checkOAuth(settings);
  const verifyJwt = jwtVerifierOf(settings, () => settings.oauthAudience ?? resourceUrl(place.publicUrl()));
  const named = namedTokens(settings.principals);
  const { known, made } = await operatorsToken(settings);
  const check = async (token: string): Promise<Admitted> => {
    const caller = holderOf(token, [...(await known()), ...named]);
    if (caller) return { caller, kind: "token" };
    if (verifyJwt && looksLikeJwt(token)) return verifyJwt(token);
    throw new TokenRefused("This server does not know the token. It may have been changed: ask the server's operator.");
  };
  const authenticate = async ({ headers }: Request): Promise<Admitted | Response> => {
    const header = headers.get("authorization")?.trim() ?? "";
    if (!/^bearer\b/i.test(header)) return missing();
    const [, token] = BEARER.exec(header) ?? [];
    if (token === undefined) return invalid("There must be one Authorization header, and in it: Bearer <token>.");
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

const ANYBODY: Admitted = { caller: LOCAL_CALLER, kind: "open" };

/** Several headers arrive as one with commas, which are in no token. */
const BEARER = /^bearer +([\w.~+/-]+=*)$/i;

function refuseOpenDoor(host: string): void {
  if (isLoopback(host)) return;
  const advice = "Leave out --no-auth, or listen on 127.0.0.1.";
  throw new ConfigError(`--no-auth on ${host} would let everybody who reaches it run commands here. ${advice}`);
}

function checkOAuth({ oauthAudience, oauthIssuer, oauthJwks }: AuthSettings): void {
  if (oauthIssuer === undefined) {
    if (oauthAudience === undefined && oauthJwks === undefined) return;
    throw new ConfigError("--oauth-audience and --oauth-jwks mean nothing without --oauth-issuer: add it.");
  }
  for (const [flag, address] of [
    ["--oauth-issuer", oauthIssuer],
    ["--oauth-jwks", oauthJwks ?? oauthIssuer],
  ] as const) {
    if (!isSafe(address)) {
      throw new ConfigError(`${flag} is "${address}": must be an https URL (http only on loopback).`);
    }
  }
}

type Verifier = (token: string) => Promise<Admitted>;

function jwtVerifierOf({ log, oauthIssuer, oauthJwks, principals }: AuthSettings, audience: () => string) {
  if (oauthIssuer === undefined) return undefined;
  const terms = new Map(Object.entries(principals));
  const verify: Verifier = createJwtVerifier({
    issuer: oauthIssuer,
    jwks: oauthJwks,
    audience,
    principals: terms,
    log,
  });
  return verify;
}

function namedTokens(principals: Readonly<Record<string, Terms>>): Known<Caller>[] {
  const holders = new Map<string, string>();
  return Object.entries(principals).flatMap(([principal, { scopes, tokenSha256 = [] }]) =>
    [tokenSha256].flat().map((hex) => {
      const other = holders.get(hex);
      if (other !== undefined && other !== principal) {
        throw new ConfigError(
          `The principals ${other} and ${principal} have the same token: each needs one of its own.`,
        );
      }
      holders.set(hex, principal);
      return { digest: Buffer.from(hex, "hex"), holder: { principal, scopes } };
    }),
  );
}

interface OperatorsToken {
  /** As it is now: its file may be changed at any time. */
  readonly known: () => Promise<Known<Caller>[]>;
  readonly made: MadeToken | undefined;
}

async function operatorsToken({ log, runToken, stateFolder, tokenFile }: AuthSettings): Promise<OperatorsToken> {
  if (runToken !== undefined) {
    const only = [{ digest: digestOf(runToken), holder: LOCAL_CALLER }];
    return { known: async () => Promise.resolve(only), made: undefined };
  }
  const path = tokenFile ?? join(stateFolder, "http-token");
  // A path that was given must exist: a misspelt one would make a token that nobody knows of.
  const token = tokenFile === undefined ? await makeToken(path) : undefined;
  const file = await TokenFile.open(path, log);
  const known = async () => {
    const digest = await file.digest();
    return digest ? [{ digest, holder: LOCAL_CALLER }] : [];
  };
  return { known, made: token === undefined ? undefined : { file: path, token } };
}
