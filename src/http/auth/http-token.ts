import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** Tokens of this server. The server keeps only their SHA-256 digests. */

/** Lets people, masks and secret scanners recognise a token. */
const PREFIX = "ccm_";

/** Returns 256 random bits, in characters allowed in a header. */
export function newToken(): string {
  return PREFIX + randomBytes(32).toString("base64url");
}

export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

/** Digest of a token, and the token's holder. */
export interface KnownToken<T> {
  readonly digest: Buffer;
  readonly holder: T;
}

/**
 * Returns the holder of `token`, `undefined` if unknown. Compares all digests in constant time, so that the duration reveals
 * nothing.
 */
export function findHolder<T>(token: string, all: readonly KnownToken<T>[], equal = timingSafeEqual): T | undefined {
  const presented = digestOf(token);
  let found: T | undefined;
  for (const { digest, holder } of all) if (equal(digest, presented)) found = holder;
  return found;
}
