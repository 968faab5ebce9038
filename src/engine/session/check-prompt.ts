import type { Refusal } from "../../domain/error.ts";
import { NO_ENVIRONMENT, type Command, type CommandOf, type CommandReply } from "../../domain/command.ts";
import { optionsOf, type SessionState } from "../../domain/session.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";
import { checkSession } from "../policy/gate.ts";
import { policyOfModes, policyOfTurn } from "../policy/of-turn.ts";
import { checkRules, gateUnder, objectionTo, policyFor, type Operator } from "../policy/operator.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { environmentFor, environmentOrRefusal } from "./environment.ts";
import { refuseOpen } from "./records.ts";

/** Whether a session may continue here: the server that takes a prompt checks it, whichever server started the session. */

interface House extends Operator {
  readonly backend: Pick<SessionBackend, "nodeId" | "rows">;
  readonly runtime: Pick<AgentRuntime, "environments" | "plan">;
}

interface Owners {
  /** Resolves when what a dead owner left of the session has ended. */
  settled(sessionId: string): Promise<void>;
}

/** Its options and folders are judged as they are by now. Resolves with the record of its environment; throws AppError. */
export async function checkPrompt(house: House, owners: Owners, record: SessionRecord): Promise<string> {
  const { backend, runtime } = house;
  const { id, principal, state } = record;
  checkRules(record);
  checkSession(gateUnder(house, record), record);
  const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
  const starts = !isForeign && state.process.phase === "none";
  // What a dead owner left may just be ending.
  if (starts) await owners.settled(id);
  const environmentId = starts ? environmentOrRefusal(house, record) : presentOf(house, record, isForeign);
  const { openIn } = await runtime.plan({
    principal,
    options: optionsOf(record.spec, state),
    policy: policyFor(house, record),
    environmentId,
    ...(starts && state.processCount > 0 && { goesOnWith: state.transcriptId ?? id }),
  });
  if (!starts) return house.environmentId;
  // It can be our own, which another prompt has started meanwhile.
  const now = openIn && (await backend.rows.get(id));
  if (openIn && now?.state.process.phase === "none") refuseOpen(id, openIn);
  return environmentId;
}

/** Of a process that runs: its own, as far as this server knows it. */
function presentOf({ environmentId, runtime }: House, record: SessionRecord, isForeign: boolean): string {
  const last = isForeign ? undefined : environmentFor(runtime.environments, record);
  return last ?? environmentId;
}

export async function mayPrompt(...about: Parameters<typeof checkPrompt>): Promise<boolean> {
  return checkPrompt(...about).then(
    () => true,
    () => false,
  );
}

/** Of a session, and what it knows. */
interface Owner {
  readonly runtime: Pick<ActorContext["runtime"], "environments">;
  readonly session: ActorSession;
  readonly state: SessionState;
}

/** What the owner has against a command that was let through where it was given, maybe by another server. */
export function refusalAtOwner(command: Command, owner: Owner): CommandReply | undefined {
  const { gate, policy } = owner.session;
  const { allowsBypass, callerApproves } = policyOfModes(policy, owner.state);
  const refusal =
    objectionTo(command, { gate, policy: { ...policyOfTurn(policy, owner.state), callerApproves } }) ??
    (bypasses(command, owner) ? bypassRefusal(command, allowsBypass) : undefined);
  if (refusal) return { ok: false, refusal };
  return command.kind === "prompt" && !hasEnvironmentFor(command.data, owner) ? NO_ENVIRONMENT : undefined;
}

/** Whether something is to run without any checks. */
function bypasses({ data, kind }: Command, { session, state }: Owner): boolean {
  const modes =
    kind === "control" && data.request.do === "configure"
      ? [data.request.permissionMode]
      : kind === "answer" && data.decision.behavior === "allow"
        ? (data.decision.updatedPermissions ?? []).map((update) => update.type === "setMode" && update.mode)
        : kind === "prompt"
          ? [optionsOf(session.spec, state).permissionMode]
          : [];
  return modes.includes("bypassPermissions");
}

/** Undefined where each client allows it whose prompt this would be for. `isAllowed`: for those that run and wait. */
function bypassRefusal(command: Command, isAllowed: boolean): Refusal | undefined {
  const isSenders = command.kind === "prompt";
  if (isSenders ? command.data.policy?.allowsBypass !== false : isAllowed) return undefined;
  const message = isSenders
    ? "The session is in permissionMode bypassPermissions by now, which this client does not allow (--allow-bypass). Set another mode first (claude_code_session, set_permission_mode)."
    : "permissionMode bypassPermissions: a prompt runs or waits in the session whose client does not allow it. Wait for its end, or drop it (claude_code_session, drop_queue).";
  return { code: "PERMISSION_DENIED", message };
}

/** A prompt to a process runs in it as it is; else one has to be started for it. */
function hasEnvironmentFor({ environmentId = "" }: CommandOf<"prompt">["data"], owner: Owner): boolean {
  const { session, state } = owner;
  const { environments } = owner.runtime;
  environments.hold(session.lease.sessionId, environmentId);
  const { process, turn } = state;
  if (turn || state.closed || process.phase === "starting" || process.phase === "live") return true;
  return environmentFor(environments, { ...session, state }, environmentId) !== undefined;
}
