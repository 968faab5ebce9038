import { createHash } from "node:crypto";
import { FORMER_PRODUCT, PRODUCT } from "../../domain/names.ts";
import { ConfigError } from "../error.ts";
import type { Principals } from "./terms.ts";

/** Words that stand in examples, or are tried first by whoever guesses: no digest of one of them is taken for a token's. */

const WORDS = [
  [
    "",
    "test",
    "test123",
    "testing",
    "example",
    "sample",
    "demo",
    "dummy",
    "foo",
    "bar",
    "foobar",
    "hello",
    "hello world",
  ],
  [
    "secret",
    "s3cret",
    "topsecret",
    "my-secret",
    "mysecret",
    "token",
    "my-token",
    "mytoken",
    "your-token",
    "your_token",
  ],
  [
    "password",
    "passw0rd",
    "p@ssw0rd",
    "password1",
    "password123",
    "pass",
    "passwd",
    "changeme",
    "change-me",
    "change_me",
  ],
  ["admin", "administrator", "root", "user", "guest", "operator", "local", "default", "login", "letmein", "welcome"],
  ["123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890", "0", "1", "a", "abc", "abc123"],
  ["qwerty", "qwerty123", "iloveyou", "monkey", "dragon", "api-key", "apikey", "api_key", "key", "bearer", "null"],
  [
    "undefined",
    "true",
    "false",
    "none",
    "todo",
    "xxx",
    "claude",
    "claude-code",
    PRODUCT,
    FORMER_PRODUCT,
    "mcp",
    "agents",
  ],
  ["ccm_", "ccm_...", "<token>", "TOKEN", "$TOKEN", "ada", "bob", "ann"],
].flat();

/** Throws ConfigError where anybody could guess a token. */
export function checkTokens(principals: Principals): void {
  for (const [name, { tokenSha256 = [] }] of Object.entries(principals)) {
    const word = [tokenSha256]
      .flat()
      .map(wordOf)
      .find((each) => each !== undefined);
    if (word === undefined) continue;
    const problem = `tokenSha256 of ${name} is the digest of ${JSON.stringify(word)}, which is easy to guess`;
    throw new ConfigError(`principals: ${problem}. Make a token with \`claude-agents-mcp token\`.`);
  }
}

let digests: Map<string, string> | undefined;

/** The word whose SHA-256, in hexadecimal digits, this is; also with the end of line that `echo` puts behind it. */
function wordOf(sha256: string): string | undefined {
  digests ??= new Map(
    WORDS.flatMap((word) => [word, word.toUpperCase(), capital(word)]).flatMap((word) =>
      ["", "\n"].map((end) => [createHash("sha256").update(`${word}${end}`).digest("hex"), word] as const),
    ),
  );
  return digests.get(sha256);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
