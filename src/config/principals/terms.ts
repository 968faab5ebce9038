import { isAbsolute } from "node:path";
import { z } from "zod";
import { ConfigError } from "../error.ts";
import { ANYWHERE } from "../setting.ts";
import { LOCAL_PRINCIPAL, Principal, Scope } from "../../domain/principal.ts";

/** What the operator settles for a user by name: how he is known, what he may do, and what his sessions may use. */

const absolute = z.string().refine((path) => isAbsolute(path), "must be an absolute path");
const digest = z
  .string()
  .regex(/^[\da-f]{64}$/, "must be a SHA-256 in 64 hexadecimal digits, as `claude-agents-mcp token` prints");

export const PrincipalTerms = z
  .strictObject({
    /** Of his tokens: one or several, so that they can be changed without a pause. The tokens themselves are kept nowhere. */
    tokenSha256: z.union([digest, z.array(digest).min(1)]).exactOptional(),
    /** With a JWT: the most that its own scopes can give. */
    scopes: z.array(Scope).min(1).default(["read", "run"]),
    /** A person sits at their clients: what comes back in a form is that person's answer, not the calling model's. */
    attended: z.boolean().default(false),
    /** In place of the server's; "any" is every folder. Over HTTP one of the two must be given. */
    allowDirs: z.union([z.literal(ANYWHERE), z.array(absolute).min(1)]).exactOptional(),
    /** In place of the server's. */
    trustDirs: z.array(absolute).exactOptional(),
    /** The Claude configuration folder of his sessions, with its own login, settings and transcripts. */
    claudeConfigDir: absolute.exactOptional(),
    /** Put before the command of each of his Claude Codes: another user of the system, a container. */
    spawnWrapper: z.array(z.string().min(1)).min(1).exactOptional(),
    /** He may use options that reach beyond his folders (env, mcpServers, sandbox ...). With scope admin he may anyway. */
    operatorOptions: z.boolean().default(false),
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

interface Door {
  readonly allowDirs: readonly string[];
  readonly auth: boolean;
  readonly http?: string | undefined;
  readonly oauthIssuer?: string | undefined;
  readonly principals: Principals;
}

/**
 * Over HTTP whoever is not the operator has folders, or it is said that they have all. `isAnywhere`: the file says so for
 * the whole server. Throws ConfigError.
 */
export function checkConfined(config: Door, isAnywhere: boolean): void {
  const { allowDirs, auth, http, oauthIssuer, principals } = config;
  // Without tokens everybody is the operator.
  if (http === undefined || !auth || isAnywhere || allowDirs.length > 0) return;
  const free = Object.entries(principals).find(([, terms]) => terms.allowDirs === undefined);
  if (free) {
    const advice = `Give ${free[0]} "allowDirs": ["/folder"] or --allow-dir; to allow any folder, "allowDirs": "${ANYWHERE}".`;
    throw new ConfigError(`principals: sessions of ${free[0]} could start in any folder of this machine. ${advice}`);
  }
  if (oauthIssuer === undefined) return;
  const advice = `Give --allow-dir; to allow any folder, "allowDirs": "${ANYWHERE}" in the file of --config.`;
  throw new ConfigError(
    `--oauth-issuer: sessions of all its subjects could start in any folder of this machine. ${advice}`,
  );
}
