import type { PeerMessages } from "../domain/approvals/peer-message.ts";
import type { Rule, RuleBehavior } from "../domain/approvals/rule.ts";
import { AppError } from "../domain/error.ts";
import type { Principal, Confine, Confinement } from "../domain/principal.ts";
import type { Places, SessionPolicy } from "../domain/approvals/session-policy.ts";
import type { Logger } from "../engine/ports.ts";
import type { ProtectedPath } from "../security/protected-paths.ts";
import type { Preparation } from "./preparation.ts";
import type { ClaudeLocator } from "./locate.ts";
import type { SandboxPolicy } from "./sandbox/sandbox.ts";
import type { ShimSettings } from "./shim/shims.ts";
import type { Guards } from "./supervise/guards.ts";
import type { TaggedServer } from "./supervise/process-tag.ts";

/** What the operator has settled for every Claude Code of this server. */
export interface ClaudeSettings {
  /** The environment of the server itself. */
  environment: NodeJS.ProcessEnv;
  /** How deep this server is nested; sessions run one deeper. */
  depth: number;
  /** Whether sessions may start sessions of their own through a server like this one. */
  mayNest: boolean;
  /** How this server was started, to keep it out of its own sessions: [command, ...args], several spellings. */
  ownCommands: () => readonly (readonly [string, ...string[]])[];
  /**
   * Where servers of this store are reached over HTTP, this one included, for the same reason; * stands for any text. Asked for
   * each process: other servers come and go.
   */
  ownUrls: () => Promise<readonly string[]>;
  /** What the sessions of each principal may use. */
  confine: Confine;
  /** The operator's rules. */
  rules: Readonly<Record<RuleBehavior, readonly Rule[]>>;
  /** Treatment of messages of other Claude Codes. */
  peerMessages: PeerMessages;
  /** What no session may reach with file tools. */
  closed: readonly ProtectedPath[];
  /** Every session runs in the sandbox, with these bounds; undefined where that is for each to say. */
  sandboxPolicy: SandboxPolicy | undefined;
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
  mask: (text: string) => string;
  /** The same of a text that is still being written. */
  maskUnfinished: (text: string) => string;
  log: Pick<Logger, "debug" | "info">;
}

/**
 * Where a session may work: at this server, and at those whose policies it runs under. All of them hold. Throws
 * PERMISSION_DENIED also where one of them has its sessions in the sandbox and this one has not, and where another wrapper was put before its processes, which may be what kept it in.
 */
export function placesOf(
  config: Pick<ClaudeSettings, "confine" | "sandboxPolicy">,
  principal: Principal,
  policy: Pick<SessionPolicy, "places" | "sandbox"> | undefined,
): { readonly own: Confinement; readonly all: readonly Places[] } {
  if (policy?.sandbox === "required" && !config.sandboxPolicy) {
    const problem = "The session was started under --sandbox required, which this server does not set";
    throw new AppError("PERMISSION_DENIED", `${problem}. Start this server with --sandbox required, too.`);
  }
  const own = confinementOf(config, principal);
  const wrapper = JSON.stringify(own.spawnWrapper);
  const all = [own, ...(policy?.places ?? [])];
  if (all.every(({ spawnWrapper: each }) => each.length === 0 || JSON.stringify(each) === wrapper)) return { own, all };
  const problem = "The session was started with a spawnWrapper other than this server's";
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem}. Continue on the server that started it, or start a new session.`,
  );
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
