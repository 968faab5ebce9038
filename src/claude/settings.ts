import type { Logger } from "../engine/ports.ts";

/** What the operator has settled for every Claude Code of this server. */
export interface ClaudeSettings {
  /** The environment of the server itself. */
  environment: NodeJS.ProcessEnv;
  /** How deep this server is nested; sessions run one deeper. */
  depth: number;
  /** Whether sessions may start sessions of their own through a server like this one. */
  mayNest: boolean;
  /** How this server was started, to keep it out of its own sessions: [command, ...args], several spellings. */
  ownCommands: readonly (readonly [string, ...string[]])[];
  /** Sessions may use these folders and what is below them only; [] means any. */
  allowDirs: readonly string[];
  /** Folders whose project settings may run, beside those Claude Code trusts. */
  trustDirs: readonly string[];
  claudePath: string | undefined;
  forceReaper: boolean;
  /** How many processes are kept started for sessions to come, and for how long where none comes, ms. */
  spares: number;
  spareIdleMs: number;
  mask: (text: string) => string;
  log: Pick<Logger, "debug">;
}
