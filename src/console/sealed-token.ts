import { randomBytes } from "node:crypto";

/**
 * A page signs in with a token and keeps neither it nor anything that stands for it: the token goes into a cookie, encrypted
 * with a key that only the page has. Cookies of 127.0.0.1 go to every port of it, and this one alone is worth nothing there;
 * and no other site can send the key. Nothing is kept here, so that a server started anew knows its people, and one that no
 * longer knows the token does not.
 */

/** What a page keeps and what its browser does. */
export interface Halves {
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
