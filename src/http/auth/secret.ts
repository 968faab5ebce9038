import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** What a token of ours is, and how one is recognised: by its SHA-256, for the server keeps nothing else of it. */

/** Lets people, masks and scanners of secrets see what it is. */
const PREFIX = "ccm_";

/** 256 bits at random, as text that a header takes. */
export function newToken(): string {
  return PREFIX + randomBytes(32).toString("base64url");
}

export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

/** A token as the server knows it, and what it is the token of. */
export interface Known<T> {
  readonly digest: Buffer;
  readonly holder: T;
}

/** Whose token this is. Takes the same time whichever it is, or none: every digest is compared, and in constant time. */
export function holderOf<T>(token: string, all: readonly Known<T>[], equal = timingSafeEqual): T | undefined {
  const presented = digestOf(token);
  let found: T | undefined;
  for (const { digest, holder } of all) if (equal(digest, presented)) found = holder;
  return found;
}
