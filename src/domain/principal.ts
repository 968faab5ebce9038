import { z } from "zod";
import type { Places } from "./approvals/session-policy.ts";

/**
 * Identity on whose behalf a caller acts: `local` on stdio, the authenticated subject on HTTP. Sessions belong to the principal
 * that opened them.
 */
export const Principal = z.string().min(1).max(256);
export type Principal = z.infer<typeof Principal>;

export const LOCAL_PRINCIPAL: Principal = "local";

/**
 * Permissions of a caller: `read` looks, `run` makes Claude Code work, `approve` answers requests, `decide` answers beyond the
 * bound for callers, `admin` controls the server.
 */
export const SCOPES = ["read", "run", "approve", "decide", "admin"] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** Maker of a call, with the call's permissions. */
export const Caller = z
  .object({
    principal: Principal,
    scopes: z.array(Scope).readonly(),
    /** True if a person sits at the client: submitted forms count as the person's answers, not as the calling model's. */
    attended: z.boolean().exactOptional(),
  })
  .readonly();
export type Caller = z.infer<typeof Caller>;

/** Scopes without `decide`, which is for programs that the operator names: a calling model stays within `--caller-approves`. */
const OPERATOR_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope !== "decide");

/** Caller with the operator's token over HTTP, which allows everything that the server can do. */
export const OPERATOR: Caller = { principal: LOCAL_PRINCIPAL, scopes: OPERATOR_SCOPES };

/** Client that started this server, with its user. */
export const LOCAL_CALLER: Caller = { ...OPERATOR, attended: true };

/** Folders and options that the operator allows for the sessions of one principal. Every path is absolute. */
export interface Confinement extends Places {
  /** Claude configuration folder. Default: the server's own. */
  readonly configDir?: string;
  /** True if sessions may use options that reach beyond their folders without the scope `admin`. */
  readonly operatorOptions: boolean;
}

/** Returns `undefined` for a principal unknown to this server, whose sessions do not run here. */
export type Confine = (principal: Principal) => Confinement | undefined;
