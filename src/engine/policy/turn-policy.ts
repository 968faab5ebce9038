import { tighter } from "../../domain/approvals/risk.ts";
import type { AddedPolicy, SessionPolicy } from "../../domain/approvals/session-policy.ts";
import { promptsOf, type SessionState } from "../../domain/session.ts";
import type { QueuedPrompt } from "../../domain/running-turn.ts";
import {
  findAdditions,
  isAsStrict,
  PROCESS_PARTS,
  tighterPolicy,
  applyAdditions,
} from "../../security/tighter-policy.ts";
import { limitsUnder } from "./operator.ts";
import type { Policy } from "./policy.ts";

/**
 * Derives the policy of a turn: the tighter of the session's policy and the policy of the client that sent the prompt. A
 * process keeps the policy of its start (`policyOfStart`); if the turn's is stricter, another process is started.
 */

type Senders = Pick<SessionState, "senders">;
type PromptSender = Pick<QueuedPrompt, "sender">;

/** Lists what the senders of prompts add, each once. */
function addedPolicies({ senders = {} }: Senders, prompts: readonly PromptSender[]): AddedPolicy[] {
  const names = new Set(prompts.flatMap(({ sender }) => sender ?? []));
  return [...names].flatMap((name) => senders[name]?.policy ?? []);
}

/** Returns prompts with a policy in force. A turn that Claude Code began by itself keeps the policy of the last prompt. */
function promptsInForce(state: SessionState): readonly PromptSender[] {
  const prompts = promptsOf(state);
  return prompts.length > 0 || state.sender === undefined ? prompts : [{ sender: state.sender }];
}

/** Tightens the session's policy by the policies in `added`. */
function tightenedPolicy({ begun, here }: Policy, added: readonly AddedPolicy[]): SessionPolicy {
  return added.reduce<SessionPolicy>((text, each) => tighterPolicy(applyAdditions(begun, each), text), here);
}

/** Returns `policy`, tightened for the present turn. */
export function policyOfTurn(policy: Policy, state: SessionState): Policy {
  const added = addedPolicies(state, promptsInForce(state));
  if (added.length === 0) return policy;
  const limits = limitsUnder(tightenedPolicy(policy, added));
  const unattended = policy.unattended && { ...policy.unattended, ...limits.unattended };
  return { ...policy, ...limits, callerApproves: tighter(limits.callerApproves, policy.sessionApproves), unattended };
}

/**
 * Returns the policy for permission modes. A mode lasts, so waiting prompts count as well. For `allowsBypass` the last sender
 * does not count between turns, because a process without checks starts anew and begins no turn by itself.
 */
export function policyOfModes(
  policy: Policy,
  state: SessionState,
): Pick<SessionPolicy, "allowsBypass" | "callerApproves"> {
  const { queue, turn } = state;
  const textFor = (prompts: readonly PromptSender[]) =>
    tightenedPolicy(policy, addedPolicies(state, [...prompts, ...queue]));
  const { callerApproves } = textFor(promptsInForce(state));
  const { allowsBypass } = textFor(turn ? promptsInForce(state) : []);
  return { allowsBypass, callerApproves: tighter(callerApproves, policy.sessionApproves) };
}

/** True if the session's process, if any, was started under terms strict enough for `added`. */
export function isStrictEnough(policy: Policy, state: SessionState, added: AddedPolicy | undefined): boolean {
  const { process } = state;
  if (process.phase !== "starting" && process.phase !== "live") return true;
  return isAsStrict(applyAdditions(policy.begun, process.policy), tightenedPolicy(policy, added ? [added] : []));
}

/**
 * Returns the policy that a process starting now adds to the session's. `former` is the addition of the process that ends for
 * it: if `former` was not strict enough, both hold, so that two alternating senders do not restart the process each time.
 */
export function policyOfStart(policy: Policy, state: SessionState, former?: AddedPolicy): AddedPolicy | undefined {
  const text = tightenedPolicy(policy, addedPolicies(state, promptsInForce(state)));
  const before = applyAdditions(policy.begun, former);
  const both = former && !isAsStrict(before, text) ? tighterPolicy(before, text) : text;
  return findAdditions(both, policy.begun, PROCESS_PARTS);
}

/** Returns the policy that the session's process was started under, tightened by `here`. */
export function policyOfProcess(
  { begun, here }: Pick<Policy, "begun" | "here">,
  { process }: SessionState,
): SessionPolicy {
  return process.phase === "none" ? here : tighterPolicy(applyAdditions(begun, process.policy), here);
}
