import { AppError } from "../../domain/error.ts";
import { type Identity, isSameIdentity } from "../../domain/process.ts";
import { optionsOf, type SessionState } from "../../domain/session.ts";
import type { Operator } from "../policy/operator.ts";
import type { AgentRuntime, SessionRecord } from "../ports.ts";

/**
 * Chooses the environment record for the start of a process: that of the client whose prompt needs the process, if
 * configuration folder and payer match the session; otherwise the session's last record, if this server has it.
 */

type Environments = AgentRuntime["environments"];
type Shown = Pick<SessionRecord, "principal" | "spec"> & { readonly state: SessionState };

/** Time to wait for a client of the session's identity, ms, because clients of a dead daemon connect to the next. */
const CLIENT_MS = 10_000;

export const ENVIRONMENT_GONE = "The environment of its client is gone.";

/** Returns the first record of `wanted`, then the session's last, that this server has and the session may use. */
export function findEnvironment(
  environments: Pick<Environments, "identityOf">,
  { principal, spec, state }: Shown,
  ...wanted: readonly string[]
): string | undefined {
  const options = optionsOf(spec, state);
  return [...wanted, state.environmentId ?? ""].find((id) => {
    const identity = environments.identityOf(id, principal, options);
    return identity !== undefined && (!state.identity || isSameIdentity(identity, state.identity));
  });
}

/**
 * Finds a record for work that no client has just sent; waits for a client of the session's identity. The own environment of a
 * server for many clients (`addsOnlyBounds`) belongs to no client, so it is not used.
 */
export async function waitForEnvironment(
  { addsOnlyBounds, environmentId: own }: Pick<Operator, "addsOnlyBounds" | "environmentId">,
  environments: Environments,
  record: Shown,
): Promise<string | undefined> {
  const { principal, spec, state } = record;
  const sender = state.turn?.prompt?.sender ?? "";
  const wanted = state.senders?.[sender]?.environmentId ?? "";
  const found =
    findEnvironment(environments, record, wanted) ??
    (addsOnlyBounds ? undefined : findEnvironment(environments, record, own));
  if (found !== undefined || !state.identity) return found;
  return environments.find(state.identity, { principal, options: optionsOf(spec, state) }, CLIENT_MS);
}

/**
 * Throws PERMISSION_DENIED, naming both identities, if no record may be used: a session must not go on silently with another
 * configuration or payer.
 */
export function requireEnvironment(
  { environmentId, runtime }: Pick<Operator, "environmentId"> & { runtime: Pick<AgentRuntime, "environments"> },
  record: Shown & Pick<SessionRecord, "id">,
): string {
  const found = findEnvironment(runtime.environments, record, environmentId);
  if (found !== undefined) return found;
  const { principal, spec, state } = record;
  const now = runtime.environments.identityOf(environmentId, principal, optionsOf(spec, state));
  refuseIdentity(record.id, state.identity, now);
}

/** Throws PERMISSION_DENIED if a process with `now` would go on with a conversation of another identity. */
export function checkIdentity({ id, state }: Pick<SessionRecord, "id" | "state">, now: Identity | undefined): void {
  const { identity: before } = state;
  if (now && before && state.process.phase === "none" && !isSameIdentity(now, before)) refuseIdentity(id, before, now);
}

function refuseIdentity(sessionId: string, before: Identity | undefined, now: Identity | undefined): never {
  const problem = `The session ran ${identityText(before)}`;
  const present = now ? `this client would use it ${identityText(now)}` : "this server has no environment for it";
  const advice = "Reply through a client with the same environment, or start a new session.";
  throw new AppError("PERMISSION_DENIED", `${problem}; ${present}. ${advice}`, { sessionId });
}

function identityText(identity: Identity | undefined): string {
  if (!identity) return "under a configuration that was not recorded";
  const { configFolder, node, paidBy, payer: { account, kind } = { kind: paidBy } } = identity;
  const place = node === undefined ? "" : ` at node ${node}`;
  const payer =
    node === undefined || account === undefined ? kind : `${kind} (account ${account.slice(-ACCOUNT_SHOWN)})`;
  return `with the configuration in ${configFolder}${place}, paid by ${payer}`;
}

/** Digits of an account that tell it from others. */
const ACCOUNT_SHOWN = 8;
