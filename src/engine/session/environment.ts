import { AppError } from "../../domain/error.ts";
import { type Identity, optionsOf, type SessionState } from "../../domain/session.ts";
import type { Operator } from "../policy/operator.ts";
import type { AgentRuntime, SessionRecord } from "../ports.ts";

/**
 * The environment record with which a process starts: that of the client whose prompt starts it, if it is for the same configuration folder
 * and payer as the session; else the last one of the session, if this server has it.
 */

type Environments = AgentRuntime["environments"];
type Shown = Pick<SessionRecord, "principal" | "spec"> & { readonly state: SessionState };

/** Time that a session without a process waits for a client of its identity, ms: clients of a dead daemon connect to the next one. */
const CLIENT_MS = 10_000;

export const GONE = "The environment of its client is gone.";

/** The first that this server has and that may be used: of these, and the session's last one. */
export function environmentFor(
  environments: Pick<Environments, "identityOf">,
  { principal, spec, state }: Shown,
  ...wanted: readonly string[]
): string | undefined {
  const options = optionsOf(spec, state);
  return [...wanted, state.environmentId ?? ""].find((id) => {
    const identity = environments.identityOf(id, principal, options);
    return identity !== undefined && (!state.identity || isSame(identity, state.identity));
  });
}

/**
 * Finds one for what no client has sent just now: waits for a client of the session's identity. A server that runs the sessions of many
 * clients (`addsOnlyBounds`) has an environment of its own that is no client's.
 */
export async function environmentOfLost(
  { addsOnlyBounds, environmentId: own }: Pick<Operator, "addsOnlyBounds" | "environmentId">,
  environments: Environments,
  record: Shown,
): Promise<string | undefined> {
  const { principal, spec, state } = record;
  const sender = state.turn?.prompt?.sender ?? "";
  const wanted = state.senders?.[sender]?.environmentId ?? "";
  const found =
    environmentFor(environments, record, wanted) ??
    (addsOnlyBounds ? undefined : environmentFor(environments, record, own));
  if (found !== undefined || !state.identity) return found;
  return environments.find(state.identity, { principal, options: optionsOf(spec, state) }, CLIENT_MS);
}

/** Throws PERMISSION_DENIED, naming both, where none may be used: a session does not go on unseen with another's configuration or money. */
export function environmentOrRefusal(
  { environmentId, runtime }: Pick<Operator, "environmentId"> & { runtime: Pick<AgentRuntime, "environments"> },
  record: Shown & Pick<SessionRecord, "id">,
): string {
  const found = environmentFor(runtime.environments, record, environmentId);
  if (found !== undefined) return found;
  const { principal, spec, state } = record;
  const now = runtime.environments.identityOf(environmentId, principal, optionsOf(spec, state));
  refuseIdentity(record.id, state.identity, now);
}

/** Throws PERMISSION_DENIED where a session would begin with what was said under another identity. */
export function checkIdentity({ id, state }: Pick<SessionRecord, "id" | "state">, now: Identity): void {
  const { identity: before } = state;
  if (before && state.process.phase === "none" && !isSame(now, before)) refuseIdentity(id, before, now);
}

function refuseIdentity(sessionId: string, before: Identity | undefined, now: Identity | undefined): never {
  const problem = `The session ran ${wordsOf(before)}`;
  const present = now ? `this client would use it ${wordsOf(now)}` : "this server has no environment for it";
  const advice = "Reply through a client with the same environment, or start a new session.";
  throw new AppError("PERMISSION_DENIED", `${problem}; ${present}. ${advice}`, { sessionId });
}

function wordsOf(identity: Identity | undefined): string {
  if (!identity) return "under a configuration that was not recorded";
  return `with the configuration in ${identity.configFolder}, paid by ${identity.paidBy}`;
}

function isSame(one: Identity, other: Identity): boolean {
  return one.configFolder === other.configFolder && one.paidBy === other.paidBy;
}
