import type { FetchImplementation, JWTVerifyGetKey, RemoteJWKSet } from "jose";
import { z } from "zod";
import type { Logger } from "../../engine/ports.ts";
import { isSafeAddress } from "../../config/loopback.ts";

/**
 * Signing keys of an authorization server: found by its metadata, fetched with the first token, cached, and fetched again for
 * an unknown key. After a failure the server is not asked for `RETRY_MS`; cached keys remain in use.
 */

/** Delay before the authorization server is asked again after a failure, ms. */
export const RETRY_MS = 5_000;

/** Time limit of a request to the authorization server, ms. */
const ANSWER_MS = 5_000;

/** The token cannot be checked at present. The log has the cause. */
export class KeysUnavailable extends Error {
  override readonly name = "KeysUnavailable";
}

export interface KeySource {
  readonly issuer: string;
  /** URL of the keys; `undefined` to use the issuer's metadata. */
  readonly jwks: string | undefined;
  readonly log: Pick<Logger, "error">;
}

/** Finds the key of a token, for jose. Throws `KeysUnavailable`, or an error of jose for a token without a known key. */
export function issuerKeys(source: KeySource): JWTVerifyGetKey {
  const attempt = pauseAfterFailure(source);
  let keys: Promise<RemoteJWKSet> | undefined;
  const open = async (): Promise<RemoteJWKSet> => {
    const { createRemoteJWKSet, customFetch } = await import("jose");
    const url = source.jwks ?? (await attempt(async () => discoverKeysUrl(source.issuer)));
    const fetchKeys: FetchImplementation = async (address, options) =>
      attempt(async () => fetchWhole(address, options));
    return createRemoteJWKSet(new URL(url), { timeoutDuration: ANSWER_MS, [customFetch]: fetchKeys });
  };
  return async (header, token) => {
    const { errors } = await import("jose");
    keys ??= open().catch((error: unknown) => {
      keys = undefined;
      throw error;
    });
    try {
      return await (
        await keys
      )(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      if (error instanceof errors.JOSENotSupported || error instanceof KeysUnavailable) throw error;
      logFailure(source, error);
      throw new KeysUnavailable("the response is not a valid key set", { cause: error });
    }
  };
}

type Attempt = <T>(ask: () => Promise<T>) => Promise<T>;

/**
 * Rejects at once for `RETRY_MS` after a failure. Any client can send a token with an unknown key, and an issuer in trouble
 * must not get a request for each.
 */
function pauseAfterFailure(source: KeySource): Attempt {
  let failedAt = 0;
  return async (ask) => {
    // `Math.abs`, because a clock may be set back.
    if (Math.abs(Date.now() - failedAt) < RETRY_MS)
      throw new KeysUnavailable("the previous request to the issuer failed a moment ago");
    try {
      return await ask();
    } catch (error) {
      failedAt = Date.now();
      logFailure(source, error);
      throw new KeysUnavailable("the request to the issuer failed", { cause: error });
    }
  };
}

function logFailure({ issuer, log }: KeySource, error: unknown): void {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  log.error("the keys of the OAuth issuer are not available", { issuer, error: String(error) + cause });
}

/** Reads the body here, so that a broken transfer counts as a failure too. */
async function fetchWhole(url: string, options: RequestInit): Promise<Response> {
  const response = await fetch(url, options);
  if (response.status !== 200) throw new Error(`${url} answers ${String(response.status)}`);
  return Response.json(await response.json());
}

const Metadata = z.object({ issuer: z.string(), jwks_uri: z.string() });

/** Returns the URL of the keys. Throws if no metadata of this issuer names a URL. */
async function discoverKeysUrl(issuer: string): Promise<string> {
  const addresses = metadataAddresses(issuer);
  for (const address of addresses) {
    // Sequential, because the first address with an answer counts.
    const response = await fetch(address, { redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS) });
    if (response.status !== 200) continue;
    // eslint-disable-next-line no-await-in-loop
    const found = Metadata.safeParse(await response.json());
    if (!found.success) throw new Error(`${address} has no issuer and jwks_uri`);
    // RFC 8414, section 3.3: otherwise anyone could speak for the issuer.
    if (found.data.issuer !== issuer) throw new Error(`${address} belongs to the issuer ${found.data.issuer}`);
    if (!isSafeAddress(found.data.jwks_uri)) throw new Error(`${address} has a jwks_uri that is not an https URL`);
    return found.data.jwks_uri;
  }
  throw new Error(`no metadata at ${addresses.join(", ")}`);
}

/**
 * Returns the metadata URLs in the order required by MCP. RFC 8414 puts the well-known name before the issuer's path, OpenID
 * Connect Discovery after the path.
 */
function metadataAddresses(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const addresses = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  return [...new Set(addresses)];
}
