import { randomUUID } from "node:crypto";
import { link, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../../config/error.ts";
import { readPrivateFile } from "../../config/private-file.ts";
import type { Logger } from "../../engine/ports.ts";
import { digestOf, newToken } from "./http-token.ts";

/**
 * The operator's token in a file: created if missing, and pinned at the start of the server. A session could have written a
 * token that appears later, so a new token is accepted only after a restart. A token that has disappeared from the file is
 * refused, because the operator may have revoked the token.
 */

/** Minimum interval between checks of the file, ms. */
const CHECK_INTERVAL_MS = 1_000;

/** A shorter token could be guessed. */
const MIN_LENGTH = 32;

/** Characters allowed in the `Authorization` header: RFC 6750, b64token. */
const SENDABLE = /^[\w.~+/-]+=*$/;

/**
 * Creates a token in `file` if missing. Resolves to the token if this call has created it: of concurrent calls only one
 * succeeds, and no process reads half a token. Throws `ConfigError` if the file cannot be created.
 */
export async function makeToken(file: string): Promise<string | undefined> {
  if (await exists(file)) return undefined;
  const token = newToken();
  const draft = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(draft, `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
    return (await linkIfAbsent(draft, file)) ? token : undefined;
  } catch (error) {
    const advice = "Make it writable, or name a file that contains a token with --token-file.";
    throw new ConfigError(`The token of this server cannot be stored in ${file}: ${String(error)}. ${advice}`, error);
  } finally {
    // Ignores failures: a draft that could not be created cannot be removed, and the first error is reported.
    await rm(draft, { force: true }).catch(() => undefined);
  }
}

/** Resolves to false if `file` exists. Uses `link`, because `rename` would replace the file. */
async function linkIfAbsent(draft: string, file: string): Promise<boolean> {
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

export class TokenFile {
  readonly #file: string;
  readonly #log: Pick<Logger, "error" | "info">;
  /** Digest of the token at the start of the server. */
  readonly #pinned: Buffer;
  #version: string;
  #isThere = true;
  #checkedAt = 0;
  #check: Promise<void> | undefined;

  private constructor(file: string, log: Pick<Logger, "error" | "info">, read: { digest: Buffer; version: string }) {
    this.#file = file;
    this.#log = log;
    this.#pinned = read.digest;
    this.#version = read.version;
  }

  /** Throws `ConfigError` if the file cannot be read, belongs to other users or is readable for them, or contains no token. */
  static async open(file: string, log: Pick<Logger, "error" | "info">): Promise<TokenFile> {
    const version = await readVersion(file);
    const opened = new TokenFile(file, log, { digest: await readDigest(file), version });
    opened.#checkedAt = Date.now();
    return opened;
  }

  /** Resolves to the digest of the pinned token, `undefined` while the file does not contain the token. */
  async digest(): Promise<Buffer | undefined> {
    // `Math.abs`, because a clock may be set back.
    if (Math.abs(Date.now() - this.#checkedAt) >= CHECK_INTERVAL_MS) {
      this.#checkedAt = Date.now();
      this.#check = this.#reload();
    }
    await this.#check;
    return this.#isThere ? this.#pinned : undefined;
  }

  async #reload(): Promise<void> {
    const version = await readVersion(this.#file);
    if (version === this.#version) return;
    this.#version = version;
    try {
      this.#isThere = this.#pinned.equals(await readDigest(this.#file));
      const file = this.#file;
      if (this.#isThere)
        this.#log.info("the token file was touched, but its token is the same and remains valid", { file });
      else
        this.#log.error(
          "the token file has changed: its old token is refused. Restart the server to accept a new one",
          {
            file,
          },
        );
    } catch (error) {
      this.#isThere = false;
      this.#log.error("the token file cannot be used: its token is refused until the file is valid", {
        error: String(error),
      });
    }
  }
}

/** Changes with the content and the permissions of `file`. Faults of the file are reported when it is read. */
async function readVersion(file: string): Promise<string> {
  try {
    const { ctimeNs, ino, mtimeNs, size } = await stat(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    return codeOf(error) ?? "unknown";
  }
}

async function readDigest(file: string): Promise<Buffer> {
  const token = (await readPrivateFile(file, "token")).trim();
  const advice = "Create one with `claude-agents-mcp token`.";
  if (token === "") throw new ConfigError(`The token file ${file} is empty. ${advice}`);
  if (token.length < MIN_LENGTH) {
    throw new ConfigError(`The token in ${file} is too short: at least ${String(MIN_LENGTH)} characters. ${advice}`);
  }
  if (!SENDABLE.test(token)) {
    throw new ConfigError(`${file} must contain one token of letters, digits and -._~+/ only. ${advice}`);
  }
  return digestOf(token);
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
