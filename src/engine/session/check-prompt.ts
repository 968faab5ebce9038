import { AppError, type Refusal } from "../../domain/error.ts";
import { NO_ENVIRONMENT, type Command, type CommandOf, type CommandReply } from "../../domain/command.ts";
import { optionsOf, type SessionState } from "../../domain/session.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";
import type { Placement } from "../placement.ts";
import { checkSession, startsWork } from "../policy/gate.ts";
import { policyOfModes, policyOfTurn } from "../policy/turn-policy.ts";
import { checkRules, gateUnder, objectionTo, policyFor, type Operator, type ServerTerms } from "../policy/operator.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { messageOf } from "../ports/store.ts";
import { checkIdentity, findEnvironment, requireEnvironment } from "./environment.ts";
import { requireProfile } from "./profile.ts";
import { refuseOpen } from "./records.ts";

/** Decides if a session may continue here. The server that takes a prompt checks, whichever server started the session. */

interface PromptCheckContext extends Operator, Pick<ServerTerms, "profilesOf"> {
  readonly backend: Pick<SessionBackend, "nodeId" | "rows">;
  readonly runtime: Pick<AgentRuntime, "environments" | "plan">;
}

interface Owners {
  /** Resolves once everything that a dead owner left of the session has ended. */
  settled(sessionId: string): Promise<void>;
}

/** Checks the options and folders that the session has by now. Resolves with its environment record; throws `AppError`. */
export async function checkPrompt(house: PromptCheckContext, owners: Owners, record: SessionRecord): Promise<string> {
  const { backend, runtime } = house;
  const { id, principal, state } = record;
  checkRules(record);
  checkSession(gateUnder(house, record), record);
  requireProfile(house, record);
  const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
  const starts = !isForeign && state.process.phase === "none";
  // Leftovers of a dead owner may still be ending.
  if (starts) await owners.settled(id);
  const environmentId = starts ? requireEnvironment(house, record) : presentEnvironment(house, record, isForeign);
  const { identity, openIn } = await runtime.plan({
    principal,
    options: optionsOf(record.spec, state),
    policy: policyFor(house, record),
    environmentId,
    ...(starts && state.processCount > 0 && { goesOnWith: state.transcriptId ?? id }),
  });
  if (!starts) return house.environmentId;
  // Now with the account of the payer, which decides at another node.
  checkIdentity(record, identity);
  // The process in `openIn` may be this server's own, started for another prompt meanwhile.
  const now = openIn && (await backend.rows.get(id));
  if (openIn && now?.state.process.phase === "none") refuseOpen(id, openIn);
  return environmentId;
}

/**
 * Resolves with the environment record for work in the session; `undefined` for a session of another machine, whose server checks
 * the start. `isPlanned`: the start was checked just now, at the creation of the session.
 */
export async function environmentFor(
  { placement, ...house }: PromptCheckContext & { readonly placement: Pick<Placement, "whereabouts"> },
  owners: Owners,
  { isPlanned, record }: { readonly isPlanned: boolean; readonly record: SessionRecord },
): Promise<string | undefined> {
  if ((await placement.whereabouts(record.place)) !== "here") return undefined;
  return isPlanned ? house.environmentId : checkPrompt(house, owners, record);
}

/** Returns the environment record of the running process, as far as this server knows it. */
function presentEnvironment(
  { environmentId, runtime }: PromptCheckContext,
  record: SessionRecord,
  isForeign: boolean,
): string {
  const last = isForeign ? undefined : findEnvironment(runtime.environments, record);
  return last ?? environmentId;
}

/** Resolves with the reason why the session may not continue here, or `undefined`. */
export async function promptRefusal(...about: Parameters<typeof checkPrompt>): Promise<Refusal | undefined> {
  return checkPrompt(...about).then(() => undefined, refusalOf);
}

function refusalOf(error: unknown): Refusal {
  return { code: error instanceof AppError ? error.code : "INTERNAL", message: messageOf(error) };
}

/** The owner of a session, with its present state. */
interface Owner {
  readonly runtime: Pick<ActorContext["runtime"], "environments">;
  readonly session: ActorSession;
  readonly state: SessionState;
}

/** Returns the owner's refusal of a command, or `undefined`. The server that let the command through may have been another. */
export function refusalAtOwner(command: Command, owner: Owner): CommandReply | undefined {
  const { gate, policy } = owner.session;
  const { allowsBypass, callerApproves } = policyOfModes(policy, owner.state);
  const refusal =
    objectionTo(command, { gate, policy: { ...policyOfTurn(policy, owner.state), callerApproves } }) ??
    (bypasses(command, owner) ? bypassRefusal(command, allowsBypass) : undefined);
  if (refusal) return { ok: false, refusal };
  return command.kind === "prompt" && !hasEnvironmentFor(command.data, owner) ? NO_ENVIRONMENT : undefined;
}

/** True if the command lets tools run without any checks. */
function bypasses({ data, kind }: Command, { session, state }: Owner): boolean {
  const modes =
    kind === "control" && data.request.do === "configure"
      ? [data.request.permissionMode]
      : kind === "answer" && data.decision.behavior === "allow"
        ? (data.decision.updatedPermissions ?? []).map((update) => update.type === "setMode" && update.mode)
        : kind === "prompt" || kind === "continue"
          ? [optionsOf(session.spec, state).permissionMode]
          : [];
  return modes.includes("bypassPermissions");
}

/** Returns `undefined` if every client concerned allows bypass. `isAllowed` covers prompts that run or wait. */
function bypassRefusal(command: Command, isAllowed: boolean): Refusal | undefined {
  const isSenders = command.kind === "prompt" || command.kind === "continue";
  if (isSenders ? command.data.policy?.allowsBypass !== false : isAllowed) return undefined;
  const message = isSenders
    ? "The session is in permissionMode bypassPermissions by now, which this client does not allow (--allow-bypass). Set another mode first (claude_code_session, set_permission_mode)."
    : "permissionMode bypassPermissions: a prompt runs or waits in the session whose client does not allow it. Wait for its end, or drop it (claude_code_session, drop_queue).";
  return { code: "PERMISSION_DENIED", message };
}

/** True if the prompt goes to a running process, or this server has an environment to start one. */
function hasEnvironmentFor({ environmentId = "" }: CommandOf<"prompt">["data"], owner: Owner): boolean {
  const { session, state } = owner;
  const { environments } = owner.runtime;
  environments.hold(session.lease.sessionId, environmentId);
  const { process, turn } = state;
  if (turn || state.closed || process.phase === "starting" || process.phase === "live") return true;
  return findEnvironment(environments, { ...session, state }, environmentId) !== undefined;
}

/** Environment record of commands from other machines: the server's own. */
const OWN = "";

/**
 * Returns the refusal of a command that this node cannot carry out: work in a session that runs elsewhere, or a start that the
 * sender could not check, because the folder is on this node only. Prompts for elsewhere pass, and wait.
 */
export async function refusalFromAfar(
  { backend, objectionToStart, placement }: Pick<ActorContext, "backend" | "objectionToStart" | "placement">,
  { lease: { sessionId }, place }: Pick<ActorSession, "lease" | "place">,
  command: Command,
): Promise<Refusal | undefined> {
  if (!backend.machines) return undefined;
  const away = await placement.whyAway(place);
  if (away !== undefined) return waits(command) ? undefined : { code: "SESSION_BUSY", message: away };
  // A server of this machine has checked the start, and names the environment for it.
  if ("environmentId" in command.data) return undefined;
  const record = await backend.rows.get(sessionId);
  return record && startsWork(command, record) ? objectionToStart(record, OWN) : undefined;
}

/** True for a command that starts no process at once. */
function waits({ kind }: Command): boolean {
  return kind !== "control" && kind !== "verify" && kind !== "continue";
}
