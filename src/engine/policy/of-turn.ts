import { tighter } from "../../domain/approvals/risk.ts";
import type { AddedPolicy, SessionPolicy } from "../../domain/approvals/session-policy.ts";
import { promptsOf, type QueuedPrompt, type SessionState } from "../../domain/session.ts";
import { addedBy, isAsStrict, OF_PROCESSES, tighterPolicy, withAdded } from "../../security/tighter-policy.ts";
import { limitsUnder } from "./operator.ts";
import type { Policy } from "./policy.ts";

/**
 * The policy of a turn is the tighter of two: that of the session, and that of the client that sent the prompt. A process keeps the one it was
 * started under; where that is less strict than the turn's, another process is started.
 */

type Senders = Pick<SessionState, "senders">;
type Sent = Pick<QueuedPrompt, "sender">;

/** Lists what the senders of prompts add, each once. */
function addedIn({ senders = {} }: Senders, prompts: readonly Sent[]): AddedPolicy[] {
  const names = new Set(prompts.flatMap(({ sender }) => sender ?? []));
  return [...names].flatMap((name) => senders[name]?.policy ?? []);
}

/** Prompts whose policy holds now. A turn that Claude Code began by itself is under that of the prompt before it. */
function inForce(state: SessionState): readonly Sent[] {
  const prompts = promptsOf(state);
  return prompts.length > 0 || state.sender === undefined ? prompts : [{ sender: state.sender }];
}

/** The text of what holds, of the session and of these senders. */
function textOf({ begun, here }: Policy, added: readonly AddedPolicy[]): SessionPolicy {
  return added.reduce<SessionPolicy>((text, each) => tighterPolicy(withAdded(begun, each), text), here);
}

/** Returns the policy that holds now. */
export function policyOfTurn(policy: Policy, state: SessionState): Policy {
  const added = addedIn(state, inForce(state));
  if (added.length === 0) return policy;
  const limits = limitsUnder(textOf(policy, added));
  const unattended = policy.unattended && { ...policy.unattended, ...limits.unattended };
  return { ...policy, ...limits, callerApproves: tighter(limits.callerApproves, policy.sessionApproves), unattended };
}

/**
 * What a mode may let run unasked: it lasts, so it holds for the prompts that wait as well. A process that is to check
 * nothing starts anew, and Claude Code begins no turn in it by itself.
 */
export function policyOfModes(
  policy: Policy,
  state: SessionState,
): Pick<SessionPolicy, "allowsBypass" | "callerApproves"> {
  const { queue, turn } = state;
  const textFor = (prompts: readonly Sent[]) => textOf(policy, addedIn(state, [...prompts, ...queue]));
  const { callerApproves } = textFor(inForce(state));
  const { allowsBypass } = textFor(turn ? inForce(state) : []);
  return { allowsBypass, callerApproves: tighter(callerApproves, policy.sessionApproves) };
}

/** Tells whether the session's process, if it has one, was started under terms that are strict enough for the prompt. */
export function isStrictEnough(policy: Policy, state: SessionState, added: AddedPolicy | undefined): boolean {
  const { process } = state;
  if (process.phase !== "starting" && process.phase !== "live") return true;
  return isAsStrict(withAdded(policy.begun, process.policy), textOf(policy, added ? [added] : []));
}

/**
 * Returns what a process that starts now adds to the policy that the session began under. `former` is that of a process that ends for this
 * one: where it was not strict enough, both hold, so that two senders in turn do not make it start anew each time.
 */
export function policyOfStart(policy: Policy, state: SessionState, former?: AddedPolicy): AddedPolicy | undefined {
  const text = textOf(policy, addedIn(state, inForce(state)));
  const before = withAdded(policy.begun, former);
  const both = former && !isAsStrict(before, text) ? tighterPolicy(before, text) : text;
  return addedBy(both, policy.begun, OF_PROCESSES);
}

/** The text of what the session's process was started under. */
export function policyOfProcess(
  { begun, here }: Pick<Policy, "begun" | "here">,
  { process }: SessionState,
): SessionPolicy {
  return process.phase === "none" ? here : tighterPolicy(withAdded(begun, process.policy), here);
}
