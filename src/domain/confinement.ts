import type { Principal } from "./principal.ts";

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
