import { isAbsolute } from "node:path";
import { z } from "zod";
import { createHash } from "node:crypto";
import { ConfigError } from "./error.ts";
import { ANYWHERE } from "./setting.ts";
import { UsdPerDay } from "../domain/budget.ts";
import { LOCAL_PRINCIPAL, Principal, Scope } from "../domain/principal.ts";
import { PRODUCT } from "../domain/names.ts";
import { ProfileName } from "../domain/profile.ts";

/** Named users: authentication, rights, and resources of their sessions. */

const absolute = z.string().refine((path) => isAbsolute(path), "must be an absolute path");
const digest = z
  .string()
  .regex(/^[\da-f]{64}$/, "must be a SHA-256 in 64 hexadecimal digits, as `claude-agents-mcp token` prints");

export const PrincipalTerms = z
  .strictObject({
    /** SHA-256 of tokens; several, so that a token can be changed without a pause. Tokens themselves are not stored. */
    tokenSha256: z.union([digest, z.array(digest).min(1)]).exactOptional(),
    /** With a JWT, the upper limit of its own scopes. */
    scopes: z.array(Scope).min(1).default(["read", "run"]),
    /** True if a person sits at the clients: submitted forms count as that person's answers, not the calling model's. */
    attended: z.boolean().default(false),
    /** Replaces the server's. "any" is every folder. Over HTTP, either must be given. */
    allowDirs: z.union([z.literal(ANYWHERE), z.array(absolute).min(1)]).exactOptional(),
    /** Replaces the server's. */
    trustDirs: z.array(absolute).exactOptional(),
    /** Claude configuration folder of the user's sessions, with its own login, settings and transcripts. */
    claudeConfigDir: absolute.exactOptional(),
    /** Prefix of each Claude Code command, to run as another system user or in a container. */
    spawnWrapper: z.array(z.string().min(1)).min(1).exactOptional(),
    /** Allows options that reach beyond the folders (`env`, `mcpServers`, `sandbox` ...). Scope `admin` allows them anyway. */
    operatorOptions: z.boolean().default(false),
    /** Profiles that the user's sessions may start with. */
    profiles: z.array(ProfileName).max(50).exactOptional(),
    /** Replaces the server's. */
    budgetUsdPerDay: UsdPerDay.exactOptional(),
  })
  .readonly();
export type PrincipalTerms = z.output<typeof PrincipalTerms>;

export const Principals = z
  .record(
    Principal.refine((name) => name !== LOCAL_PRINCIPAL, "must not be named local, which is reserved for the operator"),
    PrincipalTerms,
  )
  .default({})
  .readonly();
export type Principals = z.output<typeof Principals>;

interface AccessSettings {
  readonly allowDirs: readonly string[];
  readonly auth: boolean;
  readonly http?: string | undefined;
  readonly oauth?: object | undefined;
  readonly principals: Principals;
}

/**
 * Over HTTP every principal except the operator needs folders, or "any". `isAnywhere` is true if the file says "any" for the
 * whole server. Throws ConfigError.
 */
export function checkConfined(config: AccessSettings, isAnywhere: boolean): void {
  const { allowDirs, auth, http, oauth, principals } = config;
  // Without tokens all callers are the operator.
  if (http === undefined || !auth || isAnywhere || allowDirs.length > 0) return;
  const free = Object.entries(principals).find(([, terms]) => terms.allowDirs === undefined);
  if (free) {
    const advice = `Give ${free[0]} "allowDirs": ["/folder"] or --allow-dir; to allow any folder, "allowDirs": "${ANYWHERE}".`;
    throw new ConfigError(`principals: sessions of ${free[0]} could start in any folder of this machine. ${advice}`);
  }
  if (oauth === undefined) return;
  const advice = `Give --allow-dir; to allow any folder, "allowDirs": "${ANYWHERE}" in the file of --config.`;
  throw new ConfigError(`--oauth: sessions of all its subjects could start in any folder of this machine. ${advice}`);
}

/**
 * Digest of the settings that decide who a caller is and what each user may do; "" without users. Equal at all servers of a
 * store, or a token would mean one user at one server and another, or more rights, at the next.
 */
export function principalsDigest({ oauth, principals }: Pick<AccessSettings, "oauth" | "principals">): string {
  if (oauth === undefined && Object.keys(principals).length === 0) return "";
  // The audience names a server, not its users.
  const { audience: _, ...issuer }: { audience?: unknown } = { ...oauth };
  return createHash("sha256").update(sortedJson({ principals, issuer })).digest("hex");
}

/** JSON text in which the order of keys does not matter. */
function sortedJson(value: unknown): string {
  const sorted = (_: string, each: unknown): unknown =>
    each === null || typeof each !== "object" || Array.isArray(each)
      ? each
      : Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return JSON.stringify(value, sorted);
}

/** Words of examples and common guesses. Their digests are refused as `tokenSha256`. */

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
  ["undefined", "true", "false", "none", "todo", "xxx", "claude", "claude-code", PRODUCT, "mcp", "agents"],
  ["ccm_", "ccm_...", "<token>", "TOKEN", "$TOKEN", "ada", "bob", "ann"],
].flat();

/** Throws ConfigError if a token is easy to guess. */
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

/** Returns the word with this SHA-256 in hexadecimal. Also tries the end of line that `echo` adds. */
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
