import { isAbsolute } from "node:path";
import { z } from "zod";
import { LOCAL_PRINCIPAL, Principal, Scope } from "../domain/principal.ts";

/** What the operator settles for a user by name: how he is known, what he may do, and what his sessions may use. */

const absolute = z.string().refine((path) => isAbsolute(path), "must be an absolute path");
const digest = z
  .string()
  .regex(/^[\da-f]{64}$/, "must be a SHA-256 in 64 hexadecimal digits, as `claude-code-mcp token` prints");

export const PrincipalTerms = z
  .strictObject({
    /** Of his tokens: one or several, so that they can be changed without a pause. The tokens themselves are kept nowhere. */
    tokenSha256: z.union([digest, z.array(digest).min(1)]).exactOptional(),
    /** With a JWT: the most that its own scopes can give. */
    scopes: z.array(Scope).min(1).default(["read", "run"]),
    /** In place of the server's. */
    allowDirs: z.array(absolute).min(1).exactOptional(),
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
    Principal.refine((name) => name !== LOCAL_PRINCIPAL, "must not be named local, which is the operator himself"),
    PrincipalTerms,
  )
  .default({})
  .readonly();
export type Principals = z.output<typeof Principals>;
