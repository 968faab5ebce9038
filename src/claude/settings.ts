import { refusesPeers } from "../domain/approvals/peer-message.ts";
import { rulesOf } from "./rules.ts";
import { AppError } from "../domain/error.ts";
import type { Places, SessionPolicy } from "../domain/approvals/session-policy.ts";
import type { SessionOptions } from "../domain/options.ts";
import { type Principal, type Confine, type Confinement, LOCAL_PRINCIPAL } from "../domain/principal.ts";
import type { AgentStart, Logger } from "../engine/ports.ts";
import { childEnvironment } from "./environment.ts";
import type { Environments, Variables } from "./environments.ts";
import type { Preparation } from "./preparation.ts";
import type { ClaudeLocator } from "./locate.ts";
import type { ProtectedPlaces } from "./protected-places.ts";
import type { ShimSettings } from "./shim/shims.ts";
import type { Guards } from "./supervise/guards.ts";
import type { TaggedServer } from "./supervise/process-tag.ts";

/** What the operator has settled for every Claude Code of this server. */
export interface ClaudeSettings {
  /** Those that processes are started with. */
  environments: Environments;
  /** How deep this server is nested; sessions run one deeper. */
  depth: number;
  /** How this server was started, to keep it out of its own sessions: [command, ...args], several spellings. */
  ownCommands: () => readonly (readonly [string, ...string[]])[];
  /**
   * Where servers of this store are reached over HTTP, this one included, for the same reason; * stands for any text. Asked for
   * each process: other servers come and go.
   */
  ownUrls: () => Promise<readonly string[]>;
  /** What the sessions of each principal may use. */
  confine: Confine;
  /** What sessions are kept from. */
  protection: Pick<ProtectedPlaces, "closed" | "sandbox">;
  /** Which Claude Code runs the sessions. */
  claude: Pick<ClaudeLocator, "locate">;
  /** The Agent SDK, and the installation of what is missing. */
  preparation: Pick<Preparation, "complete" | "sdk">;
  guards: Guards;
  /** What holds the pipes of processes, so that the next server of this name goes on with them; undefined where they end with this one. */
  shim?: ShimSettings | undefined;
  /** This server, as what it starts is marked. */
  server: TaggedServer;
  /** How many processes are kept started for sessions to come, and for how long where none comes, ms. */
  spares: number;
  spareIdleMs: number;
  /** What takes secrets out of what a session says, and out of what is still being written there. */
  masksOf: (sessionId: string) => { text(text: string): string; unfinished(text: string): string };
  log: Pick<Logger, "debug" | "info">;
}

/** A session, as far as it is about where it works and in which environment. */
export type Placed = Pick<AgentStart, "environmentId" | "policy" | "principal"> & {
  readonly options: Pick<SessionOptions, "env">;
};

/**
 * Where a session may work: under the terms of each client and server that its policy comes from, and as a principal of this server.
 * All of them hold. Throws PERMISSION_DENIED where another wrapper was put before its processes, which may be what kept it in.
 */
export function placesOf(
  config: Pick<ClaudeSettings, "confine">,
  { policy, principal }: Pick<Placed, "policy" | "principal">,
): { readonly own: Confinement; readonly all: readonly Places[] } {
  const own = confinementOf(config, principal);
  const wrapper = JSON.stringify(own.spawnWrapper);
  // What holds for the user of this server is a term of each client.
  const all = principal === LOCAL_PRINCIPAL ? policy.places : [own, ...policy.places];
  if (all.every(({ spawnWrapper: each }) => each.length === 0 || JSON.stringify(each) === wrapper)) return { own, all };
  const problem = "The session was started with a spawnWrapper other than this server's";
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem}. Continue on the server that started it, or start a new session.`,
  );
}

export function isSandboxed({ sandbox }: Pick<SessionPolicy, "sandbox">): boolean {
  return sandbox === "required";
}

/** The environment record of a session. Throws PERMISSION_DENIED where it is gone. */
export function recordOf({ environments }: Pick<ClaudeSettings, "environments">, environmentId: string): Variables {
  const record = environments.get(environmentId);
  if (record) return record;
  throw new AppError("PERMISSION_DENIED", "The environment of the session's client is gone. Reply to continue.");
}

/** What the processes of a session are started with. Throws as `recordOf` and `confinementOf` do. */
export function environmentOf(
  config: Pick<ClaudeSettings, "confine" | "depth" | "environments">,
  { environmentId, options: { env = {} }, policy, principal }: Placed,
): Record<string, string> {
  const { configDir } = confinementOf(config, principal);
  const isHidden = refusesPeers(rulesOf(policy).deny);
  return childEnvironment(recordOf(config, environmentId), { depth: config.depth, configDir, added: env, isHidden });
}

/**
 * Throws PERMISSION_DENIED for a principal that this server does not know. A shared store can hold their sessions all the same: those of
 * a server over HTTP that shares it, which knows what they may use.
 */
export function confinementOf({ confine }: Pick<ClaudeSettings, "confine">, principal: Principal): Confinement {
  const known = confine(principal);
  if (known) return known;
  const problem = `This server has no user ${principal}, so it does not know the limits of that user and runs none of their sessions`;
  throw new AppError("PERMISSION_DENIED", `${problem}. Continue on a server that has the user.`);
}
