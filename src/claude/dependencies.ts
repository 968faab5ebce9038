import { refusesPeers } from "../domain/approvals/peer-message.ts";
import { parseRules } from "./rules.ts";
import { AppError } from "../domain/error.ts";
import type { Places, SessionPolicy } from "../domain/approvals/session-policy.ts";
import type { SessionOptions } from "../domain/options.ts";
import { type Principal, type Confine, type Confinement, LOCAL_PRINCIPAL } from "../domain/principal.ts";
import type { AgentStart, Logger } from "../engine/ports.ts";
import { childEnvironment } from "./child-environment.ts";
import type { EnvironmentRecords, Variables } from "./environment-records.ts";
import type { Installer } from "./installer.ts";
import type { ClaudeLocator } from "./locate.ts";
import { maskedNames, profileOf, type ProfileSource } from "./profile-environment.ts";
import type { ProtectedPlaces } from "./protected-places.ts";
import type { ShimSettings } from "./shim/start-shim.ts";
import type { Guards } from "./supervise/guards.ts";
import type { TaggedServer } from "./supervise/process-tag.ts";

/** Settings and services for every Claude Code of this server. */
export interface ClaudeDependencies {
  /** Environment records of processes. */
  environments: EnvironmentRecords;
  /** Nesting depth of this server; sessions run at `depth + 1`. */
  depth: number;
  /** Commands that start this server, [command, ...args] in several spellings, to keep this server out of its own sessions. */
  ownCommands: () => readonly (readonly [string, ...string[]])[];
  /**
   * HTTP addresses of the servers of this store, including this server, also to be kept out of sessions; `*` matches any text.
   * Asked for each process, because servers come and go.
   */
  ownUrls: () => Promise<readonly string[]>;
  /** Limits for the sessions of a principal. */
  confine: Confine;
  profiles: ProfileSource;
  /** Paths closed to sessions. */
  protection: Pick<ProtectedPlaces, "closed" | "sandbox">;
  /** Finds the Claude Code that runs sessions. */
  claude: Pick<ClaudeLocator, "locate">;
  /** Loads the Agent SDK and installs missing packages. */
  installer: Pick<Installer, "install" | "sdk">;
  guards: Guards;
  /** Shim that holds the pipes of processes for the next server of this name; `undefined` if processes end with this server. */
  shim?: ShimSettings | undefined;
  /** Folder for data of this program, with copies of files during a turn. */
  stateFolder: string;
  /** Time limit of a look at the folders of a session, or of their comparison, ms. */
  compareMs: number;
  /** Name of this node, on a store of several machines. */
  node?: string | undefined;
  /** Identifies this server in the tags of its processes. */
  server: TaggedServer;
  /** Number of spares for each key, and lifetime of an unclaimed spare, ms. */
  spares: number;
  spareIdleMs: number;
  /** Returns the functions that remove secrets from the output of a session, complete (`text`) or `unfinished`. */
  masksOf: (sessionId: string) => { text(text: string): string; unfinished(text: string): string };
  log: Pick<Logger, "debug" | "info">;
}

/** Fields of a session that determine its folders and environment. */
export type PlacedStart = Pick<AgentStart, "environmentId" | "policy" | "principal"> & {
  readonly options: Pick<SessionOptions, "env" | "profile">;
};

/**
 * Returns the folders of a session: under the terms of each client and server in its policy, and under the principal's terms
 * here. All of them hold. Throws PERMISSION_DENIED if the session's processes had a different `spawnWrapper`, which may have
 * confined the session.
 */
export function allowedPlaces(
  config: Pick<ClaudeDependencies, "confine">,
  { policy, principal }: Pick<PlacedStart, "policy" | "principal">,
): { readonly own: Confinement; readonly all: readonly Places[] } {
  const own = requireConfinement(config, principal);
  const wrapper = JSON.stringify(own.spawnWrapper);
  // Limits of this server's user are already a term of each client.
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

/** Returns the environment record of a session. Throws PERMISSION_DENIED if the record is gone. */
export function requireRecord(
  { environments }: Pick<ClaudeDependencies, "environments">,
  environmentId: string,
): Variables {
  const record = environments.get(environmentId);
  if (record) return record;
  throw new AppError("PERMISSION_DENIED", "The environment of the session's client is gone. Reply to continue.");
}

/**
 * Returns the environment for processes of a session, without the variables that its profile takes from files. Throws as
 * `requireRecord`, `requireConfinement` and `profileOf` do.
 */
export function buildEnvironment(
  config: Pick<ClaudeDependencies, "confine" | "depth" | "environments" | "profiles">,
  { environmentId, policy, ...session }: PlacedStart,
): Record<string, string> {
  const isHidden = refusesPeers(parseRules(policy).deny);
  return environmentIn(config, requireRecord(config, environmentId), session, isHidden);
}

/** Returns the environment of a session's process for the record of a client. */
export function environmentIn(
  config: Pick<ClaudeDependencies, "confine" | "depth" | "profiles">,
  record: Variables,
  session: Pick<PlacedStart, "options" | "principal">,
  isHidden = false,
): Record<string, string> {
  const { depth } = config;
  const { configDir } = requireConfinement(config, session.principal);
  const { env: added = {} } = session.options;
  return childEnvironment(record, { depth, configDir, added, isHidden, profile: profileOf(config, session) });
}

/**
 * Throws PERMISSION_DENIED for a principal unknown to this server. A shared store can hold sessions of such principals, created
 * by a server over HTTP that knows their limits.
 */
export function requireConfinement(
  { confine }: Pick<ClaudeDependencies, "confine">,
  principal: Principal,
): Confinement {
  const known = confine(principal);
  if (known) return known;
  const problem = `This server has no user ${principal}, so it does not know the limits of that user and runs none of their sessions`;
  throw new AppError("PERMISSION_DENIED", `${problem}. Continue on a server that has the user.`);
}

/**
 * Returns the masks of a session, and registers its environment and the secrets of its profile first, so that they are masked.
 */
export function sessionMasks(
  { environmentId, options, sessionId }: Pick<AgentStart, "environmentId" | "sessionId"> & Pick<PlacedStart, "options">,
  { environments, masksOf }: Pick<ClaudeDependencies, "environments" | "masksOf">,
  secrets: Variables = {},
): { readonly mask: (text: string) => string; readonly maskUnfinished: (text: string) => string } {
  environments.hold(sessionId, environmentId, { ...options.env, ...maskedNames(secrets) });
  const masker = masksOf(sessionId);
  return { mask: (text) => masker.text(text), maskUnfinished: (text) => masker.unfinished(text) };
}
