import type { CommandOf } from "../../domain/command.ts";
import { promptsOf, type SessionState } from "../../domain/session.ts";
import type { QueuedPrompt, Sender } from "../../domain/running-turn.ts";
import type { TurnLimits } from "../../domain/prompt.ts";
import { findAdditions } from "../../security/tighter-policy.ts";
import { isStrictEnough } from "../policy/turn-policy.ts";
import type { Draft } from "./draft.ts";

/** Policies and environments of the senders of waiting and running prompts. */

/** Maximum number of senders, and of characters of several senders as JSON, to keep the state small. */
const MAX_SENDERS = 8;
const MAX_TEXT = 4_096;

/** Refusals of a client by its terms, or by those of others. */
export const CROWDED =
  "Prompts of too many clients with terms of their own are waiting already. Wait until one has run.";
export const STRICTER = "The session's Claude Code was started under terms that allow more than this client does";

type PromptData = CommandOf<"prompt">["data"];

/** Notes from `limits` which approvers can be reached. Valid until the next prompt or verification. */
export function noteReach(state: SessionState, limits: TurnLimits = {}): void {
  for (const name of REACH) {
    if (limits[name]) state[name] = true;
    else Reflect.deleteProperty(state, name);
  }
}

const REACH = ["atConsole", "decides", "noCaller", "noDialog", "unattended"] as const;

/** Returns differences only: no policy if equal to the session's, no environment if it is the server's own. */
export function senderOf(
  { policy: { begun } }: Draft,
  { environmentId = "", policy }: Pick<PromptData, "environmentId" | "policy">,
): Sender {
  const added = policy && findAdditions(policy, begun);
  return { ...(environmentId !== "" && { environmentId }), ...(added && { policy: added }) };
}

/** True if the state has room for `sender`. */
export function hasRoom({ senders = {} }: SessionState, sender: Sender): boolean {
  if (Object.keys(sender).length === 0) return true;
  const others = Object.values(senders).filter((each) => JSON.stringify(each) !== JSON.stringify(sender));
  if (others.length === 0 || others.length < Object.keys(senders).length) return true;
  return others.length < MAX_SENDERS && JSON.stringify([...others, sender]).length <= MAX_TEXT;
}

/** Returns the prompt as it waits, with the name of its sender. Event `eventId` holds its text. */
export function queuedPrompt(
  state: SessionState,
  { limits, promptId, resumeAt, verify }: PromptData,
  eventId: number,
  sender: Sender,
): QueuedPrompt {
  return {
    promptId,
    eventId,
    ...(limits && { limits }),
    ...(resumeAt !== undefined && { resumeAt }),
    ...(verify && { verify: true }),
    ...noteSender(state, sender),
  };
}

/** Keeps `sender` for a turn without a prompt, in which nothing else names the sender. */
export function noteLastSender(state: SessionState, { sender }: Pick<QueuedPrompt, "sender">): void {
  if (sender === undefined) delete state.sender;
  else state.sender = sender;
}

/** Stores `sender` in the state and returns its name there. */
export function noteSender(state: SessionState, sender: Sender): Pick<QueuedPrompt, "sender"> {
  const { senders = {} } = state;
  const text = JSON.stringify(sender);
  if (text === "{}") return {};
  const known = Object.keys(senders).find((name) => JSON.stringify(senders[name]) === text);
  const name = known ?? freeName(senders);
  state.senders = { ...senders, [name]: sender };
  return { sender: name };
}

function freeName(senders: Readonly<Record<string, Sender>>): string {
  for (let number = 1; ; number += 1) if (!(String(number) in senders)) return String(number);
}

/** True if the session's process, if any, may take a prompt of the sender. */
export function mayTake({ base, state }: Pick<Draft, "base" | "state">, { policy }: Sender): boolean {
  return isStrictEnough(base, state, policy);
}

export function findSender({ senders = {} }: SessionState, { sender }: Pick<QueuedPrompt, "sender">): Sender {
  return (sender === undefined ? undefined : senders[sender]) ?? {};
}

/** Notes the environment record of a process that starts, or has started. */
export function noteEnvironment(state: SessionState, environmentId = ""): void {
  if (environmentId === "") delete state.environmentId;
  else state.environmentId = environmentId;
}

/** Drops senders without a waiting or running prompt. Called after each step. */
export function forgetSenders(state: SessionState): void {
  if (!state.senders) return;
  const refused = state.refused?.prompt ? [state.refused.prompt] : [];
  const used = new Set([...state.queue, ...promptsOf(state), ...refused, state].map(({ sender }) => sender));
  const left = Object.entries(state.senders).filter(([name]) => used.has(name));
  if (left.length === 0) delete state.senders;
  else state.senders = Object.fromEntries(left);
}
