import { optionsOf, type SessionState } from "../../domain/session.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";
import { policyOfProcess } from "../policy/turn-policy.ts";
import type { StoreMachines } from "../ports.ts";
import type { LocalConversation } from "./copies.ts";

/** Decides which conversations are stored for other nodes, and where they are. */

export interface KeeperOptions
  extends
    Pick<ActorContext, "backend" | "clock" | "log" | "runtime">,
    Pick<ActorSession, "lease" | "place" | "policy" | "principal" | "spec"> {}

/** Returns the parts of the store for a session whose conversation other nodes may go on with; otherwise `undefined`. */
export function keepingStore({
  backend: { machines },
  place,
  spec,
}: Pick<KeeperOptions, "backend" | "place" | "spec">): StoreMachines | undefined {
  const mayMove = place !== undefined && "volume" in place && spec.persistSession !== false;
  return mayMove ? machines : undefined;
}

/**
 * True if `node` has run the last process of the session. Its files are then the conversation: the store may lack the last turns,
 * and all other nodes have an older state, or a branch that was given up with a lost turn.
 */
export function ranLastAt(node: string, { identity }: Pick<SessionState, "identity">): boolean {
  return identity?.node === node;
}

/** Returns the conversation of a session in the configuration folder of this node. */
export function localConversation(
  { policy, principal, runtime: { conversations }, spec, lease }: KeeperOptions,
  state: SessionState,
  environmentId = state.environmentId ?? "",
): LocalConversation {
  const { transcriptId = lease.sessionId } = state;
  const about = { policy: policyOfProcess(policy, state), principal, options: optionsOf(spec, state) };
  return { conversations, place: { ...about, environmentId, transcriptId } };
}
