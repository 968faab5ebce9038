import { z } from "zod";
import type { Places } from "./approvals/session-policy.ts";

/** On whose behalf a verb runs: "local" on stdio, the authenticated subject on HTTP. A session belongs to the one that opened it. */
export const Principal = z.string().min(1).max(256);
export type Principal = z.infer<typeof Principal>;

export const LOCAL_PRINCIPAL: Principal = "local";

/**
 * What a caller may do: look, make Claude Code work, answer what it asks, decide there beyond the bound for callers, and settle
 * how the server runs.
 */
export const SCOPES = ["read", "run", "approve", "decide", "admin"] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** Who makes a call, and what they may do. */
export const Caller = z
  .object({
    principal: Principal,
    scopes: z.array(Scope).readonly(),
    /** A person sits at the client: what comes back in a form is theirs, not the calling model's. */
    attended: z.boolean().exactOptional(),
  })
  .readonly();
export type Caller = z.infer<typeof Caller>;

/** `decide` is for programs that the operator names: a calling model stays within --caller-approves. */
const OF_THE_OPERATOR: readonly Scope[] = SCOPES.filter((scope) => scope !== "decide");

/** The operator's token over HTTP: it allows everything that the server can do. */
export const OPERATOR: Caller = { principal: LOCAL_PRINCIPAL, scopes: OF_THE_OPERATOR };

/** The client that started this server, with its user. */
export const LOCAL_CALLER: Caller = { ...OPERATOR, attended: true };

/** What the sessions of one principal may use, as the operator has settled it. Every path is absolute. */
export interface Confinement extends Places {
  /** The Claude configuration folder; without it the server's own. */
  readonly configDir?: string;
  /** They may use options that reach beyond their folders without the scope admin. */
  readonly operatorOptions: boolean;
}

/** Undefined for a principal that this server does not know: their sessions do not run here. */
export type Confine = (principal: Principal) => Confinement | undefined;
