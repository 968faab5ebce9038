import type { Command, CommandOf } from "../../domain/command.ts";
import type { Refusal } from "../../domain/error.ts";
import type { ClosedReason } from "../../domain/event.ts";
import type { Decision } from "../../domain/permission.ts";
import { promptsOf, type SessionState } from "../../domain/session.ts";
import type { Sender, Turn } from "../../domain/running-turn.ts";
import { changedInputObjection } from "./requests/changed-input.ts";
import { fillRequest, giveUp, markDelivered, settleRequest } from "./requests/requests.ts";
import { accept, emit, refuse, type Draft, type Input } from "./draft.ts";
import { onControl } from "./control.ts";
import { CLIENT_GONE, closeSession, dropPrompt, interruptedBy, interruptTurn } from "./stop.ts";
import { onContinue } from "./at-limit.ts";
import { limitRefusal, startLimit } from "./limits.ts";
import { mayHoldBack } from "./waits.ts";
import { replyToRetry, KEYS_KEPT, noteKey } from "./keys.ts";
import { hasRoom, mayTake, noteEnvironment, noteReach, queuedPrompt, senderOf, STRICTER, CROWDED } from "./senders.ts";
import { extend, answerObjection } from "./requests/approval-chain.ts";
import { onRevoke, rememberAnswer } from "./requests/remembering.ts";
import { cancelSuspend } from "./suspend.ts";
import { holdQueue, runNext, steer } from "./turn.ts";
import type { Ending } from "./endings.ts";
import { goOn, onVerify } from "./verify.ts";
import { attend } from "./unattended.ts";

/** Maximum number of waiting prompts, to keep the state small. */
const MAX_QUEUE = 50;
/** Maximum length of the `reason` of a cancel command, characters. */
const MAX_REASON = 500;

/** Facts about an answer with changed input, see `Happening`. */
type ChangedInput = Pick<Extract<Input, { type: "command" }>, "isMasked" | "judgement">;

/**
 * True for a command that must not be carried out twice. If an owner dies before replying, the next owner gets the command
 * again and cannot tell.
 *
 * Most commands are harmless to repeat: prompts and answers are recognized by their ids; `delivered`, `pass` and `fill` are
 * no-ops for a request that is gone or with another approver; `revoke` finds nothing the second time; clients send `attend` all
 * the time; a session is closed or cancelled once; and a control request (a mode, a model, the end of a task, its output,
 * usage, suspend) has no further effect. All others would meet work that came after the first run, so `recentCommands`
 * remembers them.
 */
function mustRunOnce(command: Command): boolean {
  if (command.kind === "control") return command.data.request.do === "rewind" && !command.data.request.dryRun;
  return (
    command.kind === "continue" || command.kind === "interrupt" || command.kind === "queue" || command.kind === "extend"
  );
}

export function onCommand(draft: Draft, command: Command, changed: ChangedInput = {}): void {
  if (!mustRunOnce(command)) return carryOut(draft, command, changed);
  const { state } = draft;
  const seen = state.recentCommands?.find(({ id }) => id === command.id);
  if (seen) return command.kind === "control" ? refuseRewind(draft, command) : accept(draft, command, seen.cursor);
  const cursor = state.lastEventId + 1;
  carryOut(draft, command, changed);
  const isRefused = draft.effects.some((effect) => effect.type === "reply" && !effect.reply.ok);
  if (!isRefused)
    state.recentCommands = [...(state.recentCommands ?? []), { id: command.id, cursor }].slice(-KEYS_KEPT);
}

/** Refuses instead of repeating: Claude Code may have restored the files before its server died, and changed files since. */
function refuseRewind(draft: Draft, command: Command): void {
  const problem = "The outcome is unknown: the server that was asked to restore the files died before it could answer";
  refuse(draft, command, "INTERNAL", `${problem}. See with dryRun: true what would change, then ask again.`);
}

function carryOut(draft: Draft, command: Command, changed: ChangedInput): void {
  if (isReport(command)) return onReport(draft, command);
  switch (command.kind) {
    case "verify":
      return onVerify(draft, command);
    case "continue":
      return onContinue(draft, command);
    case "prompt":
      return onPrompt(draft, command);
    case "answer":
      return onAnswer(draft, command, changed);
    case "extend":
      return onExtend(draft, command);
    case "revoke":
      return onRevoke(draft, command);
    case "interrupt":
      return onInterrupt(draft, command);
    case "queue":
      return onQueue(draft, command);
    case "control":
      return onControl(draft, command);
    case "cancel":
    case "close":
      return onClose(draft, command);
  }
}

type Report = CommandOf<"attend" | "delivered" | "fill" | "pass">;

function isReport(command: Command): command is Report {
  return ["attend", "delivered", "fill", "pass"].includes(command.kind);
}

/** Notes what approvers were shown, have filled in or do not answer. */
function onReport(draft: Draft, command: Report): void {
  const cursor = draft.state.lastEventId + 1;
  if (command.kind === "attend") attend(draft);
  else if (command.kind === "pass") giveUp(draft, command.data);
  else if (command.kind === "fill") fillRequest(draft, command.data);
  else for (const delivered of command.data.requests) markDelivered(draft, delivered);
  accept(draft, command, cursor);
}

function onPrompt(draft: Draft, command: CommandOf<"prompt">): void {
  const { state } = draft;
  const { promptId, text, attachments, via, whenBusy } = command.data;
  if (state.closed) {
    const problem = `The session was ${state.closed.reason} and takes no more prompts. Start a new one with claude_code.`;
    return refuse(draft, command, "CANCELLED", problem);
  }
  if (replyToRetry(draft, command)) return;
  const sender = senderOf(draft, command.data);
  const objection = promptObjection(draft, command.data, sender);
  if (objection) return refuse(draft, command, objection.code, objection.message);
  const { limits, verify } = command.data;
  const beside = { ...(attachments && { attachments }), ...(via !== undefined && { via }), ...(verify && { verify }) };
  const eventId = emit(draft, { type: "prompt.queued", data: { promptId, text, ...beside } });
  noteKey(state, command, eventId);
  if (state.suspendReason !== "forbidden") cancelSuspend(state);
  noteReach(state, limits);
  attend(draft);
  const prompt = queuedPrompt(state, command.data, eventId, sender);
  if (!mayTake(draft, sender) && (state.turn ?? state.background.length > 0)) noteWaiting(draft);
  if (whenBusy === "steer" && canSteer(state)) {
    // Claude Code reads the prompt at the next tool boundary or right after its answer; the turn ends after both.
    goOn(draft);
    steer(draft, prompt);
  } else {
    state.queue.push(prompt);
    runNext(draft);
  }
  accept(draft, command, eventId);
}

function noteWaiting(draft: Draft): void {
  const why = "The client of this prompt has stricter terms than the running Claude Code was started under.";
  const message = `${why} The prompt waits until nothing runs, then another process takes it.`;
  emit(draft, { type: "notice", data: { kind: "waiting", message } });
}

/** Returns the objection to a prompt in an open session, or `undefined`. */
function promptObjection(draft: Draft, prompt: CommandOf<"prompt">["data"], sender: Sender): Refusal | undefined {
  const { policy, state } = draft;
  if (policy.ephemeral && prompt.resumeAt !== undefined) {
    const message =
      "resumeSessionAt: the session keeps no transcript to go back in (persistSession: false). Leave it out.";
    return { code: "INVALID_ARGUMENT", message };
  }
  // A prompt waits during a turn of origin `self`, of which no caller could know, and while the server looks at the folders.
  const isBusy = state.turn?.origin === "prompt" && state.turn.settling?.phase !== "look";
  if (isBusy && (prompt.whenBusy ?? "reject") === "reject") {
    const advice = "Wait for its end with claude_code_check (until: end), or send it with whenBusy queue or steer.";
    return { code: "SESSION_BUSY", message: `The session is busy with another prompt. ${advice}` };
  }
  const isEnough = mayTake(draft, sender);
  const objection = limitObjection(draft, prompt) ?? (isEnough ? undefined : strictTermsObjection(draft, prompt));
  if (objection) return objection;
  const full = `${String(MAX_QUEUE)} prompts are waiting already. Wait until one has run.`;
  if (state.queue.length >= MAX_QUEUE) return { code: "SESSION_BUSY", message: full };
  return hasRoom(state, sender) ? undefined : { code: "SESSION_BUSY", message: CROWDED };
}

/** Returns the objection to a prompt whose turn would start now, but for a limit of the operator. */
function limitObjection(draft: Draft, prompt: CommandOf<"prompt">["data"]): Refusal | undefined {
  const limit = draft.state.turn ? undefined : startLimit(draft);
  return !limit || mayHoldBack(draft, prompt, limit) ? undefined : limitRefusal(limit);
}

/** Returns the objection to a prompt that needs a process under stricter terms than the running process. */
function strictTermsObjection(
  { policy, state }: Draft,
  { whenBusy }: CommandOf<"prompt">["data"],
): Refusal | undefined {
  if (policy.ephemeral) {
    const why = "and keeps no transcript that another one could go on with (persistSession: false)";
    return { code: "PERMISSION_DENIED", message: `${STRICTER}, ${why}. Start a new session.` };
  }
  if (whenBusy !== "steer" || !canSteer(state)) return undefined;
  const advice = "Send the prompt with whenBusy: queue, and another process takes it after the turn.";
  return {
    code: "PERMISSION_DENIED",
    message: `${STRICTER}, so the prompt cannot join the running turn. ${advice}`,
  };
}

/** True if the running turn accepts another prompt: not being stopped, and with a live process. */
function canSteer({ process, turn, waiting }: SessionState): boolean {
  return turn !== null && !waiting && !turn.stopping && !turn.pending && process.phase === "live";
}

/** Runs or drops held prompts, as the caller decides. */
function onQueue(draft: Draft, command: CommandOf<"queue">): void {
  const { state } = draft;
  const cursor = state.lastEventId + 1;
  if (state.closed) return refuse(draft, command, "CANCELLED", `The session was ${state.closed.reason}.`);
  if (command.data.do === "drop") {
    const dropped = state.queue.filter(({ held }) => held);
    state.queue = state.queue.filter(({ held }) => !held);
    if (!state.turn) delete state.waiting;
    for (const { promptId } of dropped) emit(draft, { type: "prompt.dropped", data: { promptId, reason: "dropped" } });
  } else {
    for (const prompt of state.queue) delete prompt.held;
    if (state.process.phase === "none") noteEnvironment(state, command.data.environmentId ?? state.environmentId);
    runNext(draft);
  }
  accept(draft, command, cursor);
}

function onAnswer(draft: Draft, command: CommandOf<"answer">, { isMasked = false, judgement }: ChangedInput): void {
  const { state } = draft;
  const { requestId, decision, by, forSession } = command.data;
  const request = state.requests.find((open) => open.requestId === requestId);
  if (!request) return replyWithoutOpenRequest(draft, command);
  const objection = answerObjection(draft, request, command.data);
  if (objection) return refuse(draft, command, objection.code, objection.message);
  if (decision.behavior === "allow" && decision.updatedInput && !request.seenWhole) {
    const advice = `Read all of event ${String(request.eventId)} first (poll with eventId), or poll with a larger maxBytes.`;
    return refuse(draft, command, "INVALID_ARGUMENT", `updatedInput: the input was only shown truncated. ${advice}`);
  }
  const problem = changedInputObjection(draft, request, command.data, judgement);
  if (problem) return refuse(draft, command, problem.code, problem.message);
  const said = decision.behavior === "deny" ? { message: decision.message } : changesOf(decision);
  const remembered = rememberAnswer(draft, command);
  const lasting = forSession && { forSession, ...(remembered.length > 0 && { remembered }) };
  settleRequest(
    draft,
    request,
    { behavior: decision.behavior, by, ...said, ...lasting },
    { commandId: command.id, isMasked },
  );
  const cursor = state.lastEventId;
  draft.effects.push({ type: "answer", requestId, decision });
  if (decision.behavior === "deny" && decision.interrupt && state.turn) stopByDenial(draft, state.turn, by);
  accept(draft, command, cursor);
}

/** Records the reason, because Claude Code ends the turn by itself after such a denial and names none. */
function stopByDenial(draft: Draft, turn: Turn, by: string): void {
  if (draft.state.waiting) return interruptTurn(draft, turn, { by });
  turn.stopping ??= { reason: "interrupt", by, at: draft.at, forMs: 0, killed: false };
  holdQueue(draft);
}

function changesOf({ updatedInput, updatedPermissions }: Extract<Decision, { behavior: "allow" }>) {
  return { ...(updatedInput && { updatedInput }), ...(updatedPermissions && { updatedPermissions }) };
}

function onExtend(draft: Draft, command: CommandOf<"extend">): void {
  const { state } = draft;
  const request = state.requests.find(({ requestId }) => requestId === command.data.requestId);
  if (!request) return replyWithoutOpenRequest(draft, command);
  const objection = extend(draft, request);
  if (objection) return refuse(draft, command, objection.code, objection.message);
  accept(draft, command, state.lastEventId + 1);
}

/** Replies for a request that is not open: answered before, or never asked. */
function replyWithoutOpenRequest(draft: Draft, command: CommandOf<"answer" | "extend">): void {
  const { state } = draft;
  const { requestId } = command.data;
  const first = state.answered.find((answer) => answer.requestId === requestId);
  // Accepts a repeated command, because its first reply did not arrive in time.
  if (first?.commandId === command.id) return accept(draft, command, state.lastEventId + 1);
  const problem = first
    ? `Request ${requestId} was already answered: ${first.behavior}, by ${first.by}.`
    : `There is no open request ${requestId}. The open ones are listed in actions[] of claude_code_check.`;
  return refuse(draft, command, "PERMISSION_REQUEST_NOT_FOUND", problem);
}

function onInterrupt(draft: Draft, command: CommandOf<"interrupt">): void {
  const { state } = draft;
  const { turn } = state;
  const { by, isClientGone = false, promptId } = command.data;
  const cursor = state.lastEventId + 1;
  // A gone client ends only a turn that its own prompt began, not another client's turn that the prompt has joined.
  const meant = isClientGone ? [turn?.prompt] : promptsOf(state);
  const isMeant = promptId === undefined || meant.some((prompt) => prompt?.promptId === promptId);
  if (promptId !== undefined && !isMeant) dropPrompt(draft, promptId, isClientGone ? CLIENT_GONE : "cancelled");
  if (turn && isMeant) interruptTurn(draft, turn, { by, holdsQueue: !isClientGone });
  accept(draft, command, cursor);
}

function onClose(draft: Draft, command: CommandOf<"cancel" | "close">): void {
  const reason: ClosedReason = command.kind === "cancel" ? "cancelled" : "closed";
  const cursor = draft.state.lastEventId + 1;
  const { by } = command.data;
  const message = command.kind === "cancel" ? command.data.reason?.slice(0, MAX_REASON) : undefined;
  const cancelled: Ending = { outcome: "cancelled", errorSubtype: "cancelled", code: "CANCELLED" };
  const ending = reason === "cancelled" ? { ...cancelled, message: message ?? "Cancelled." } : interruptedBy(by);
  closeSession(draft, ending, { reason, by, ...(message !== undefined && { message }) });
  accept(draft, command, cursor);
}
