import { z } from "zod";

/** On whose behalf a verb runs: "local" on stdio, the authenticated subject on HTTP. A session belongs to the one that opened it. */
export const Principal = z.string().min(1).max(256);
export type Principal = z.infer<typeof Principal>;

export const LOCAL_PRINCIPAL: Principal = "local";

/** What a caller may do: look, make Claude Code work, decide what it asks, and settle how the server runs. */
export const SCOPES = ["read", "run", "approve", "admin"] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** Who makes a call, and what they may do. */
export const Caller = z.object({ principal: Principal, scopes: z.array(Scope).readonly() }).readonly();
export type Caller = z.infer<typeof Caller>;

/** Whoever can start this server can do all that it does. */
export const LOCAL_CALLER: Caller = { principal: LOCAL_PRINCIPAL, scopes: SCOPES };

/** What the sessions of one principal may use, as the operator has settled it. Every path is absolute. */
export interface Confinement {
  /** Only these folders and what is below them, by real path; [] means any. */
  readonly allowDirs: readonly string[];
  /** Here, and below, settings of a project may run commands. */
  readonly trustDirs: readonly string[];
  /** And where Claude Code's own record of trust says so. */
  readonly trustsRecord: boolean;
  /** The Claude configuration folder; without it the server's own. */
  readonly configDir?: string;
  /** Put before the command of every process; [] is nothing. */
  readonly spawnWrapper: readonly string[];
  /** He may use options that reach beyond his folders, whatever his scopes. */
  readonly operatorOptions: boolean;
}

/** Undefined for a principal that this server does not know: nothing of his is run here. */
export type Confine = (principal: Principal) => Confinement | undefined;
