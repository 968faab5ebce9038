import type { Rule } from "../domain/approvals/rule.ts";
import { AppError } from "../domain/error.ts";
import type { Principal, Confine, Confinement } from "../domain/principal.ts";
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
  /** Where this server is reached over HTTP, for the same reason; * stands for any text. */
  ownUrls: readonly string[];
  /** What the sessions of each principal may use. */
  confine: Confine;
  /** The operator's rules that deny or ask. */
  rules: { readonly ask: readonly Rule[]; readonly deny: readonly Rule[] };
  claudePath: string | undefined;
  forceReaper: boolean;
  /** How many processes are kept started for sessions to come, and for how long where none comes, ms. */
  spares: number;
  spareIdleMs: number;
  mask: (text: string) => string;
  log: Pick<Logger, "debug">;
}

/**
 * Throws PERMISSION_DENIED for a principal that this server does not know. A store can hold his sessions all the same: those of
 * a server over HTTP that shares it, which knows what they may use.
 */
export function confinementOf({ confine }: Pick<ClaudeSettings, "confine">, principal: Principal): Confinement {
  const known = confine(principal);
  if (known) return known;
  const problem = `This server has no user ${principal}, and does not know what sessions of that name may use`;
  throw new AppError("PERMISSION_DENIED", `${problem}: it runs none. Go on through the server that has the user.`);
}
