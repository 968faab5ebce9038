import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { Turn } from "../../domain/running-turn.ts";
import { policyOfTurn } from "../policy/turn-policy.ts";
import type { Policy } from "../policy/policy.ts";
import { endWait, lookAtWait } from "./at-limit.ts";
import { waitLeftMs } from "./waits.ts";
import { denyRequest } from "./requests/requests.ts";
import { expireSession } from "./stop.ts";
import type { Draft } from "./draft.ts";
import { escalate } from "./requests/approval-chain.ts";
import { endProcess } from "./starting.ts";
import { endTurn, tellToContinue } from "./turn.ts";
import { stoppedEnding, type LimitReason } from "./endings.ts";
import { giveUpSettling, stopSettling } from "./verify.ts";
import { beginUnattended, endUnattended, unattendedDue } from "./unattended.ts";

/** Maximum time until Claude Code begins to rerun a lost turn, ms; usually under 1 s. */
const RERUN_MS = 5_000;

type Due =
  | { kind: "request"; request: OpenRequest }
  | { kind: "turn"; turn: Turn; reason: LimitReason }
  | { kind: "kill"; turn: Turn }
  | { kind: "go-on" | "settle"; turn: Turn }
  | { kind: "wait" | "idle" | "unattended" | "unattended-over" };
/** `leftMs`: time awake until the deadline is due, ms. */
type Deadline = Due & { leftMs: number };

/** Derives all deadlines from the state. None is ever set or cleared by hand: a deadline disappears with its reason. */
function deadlines(state: SessionState, base: Policy): Deadline[] {
  const policy = policyOfTurn(base, state);
  const found: Deadline[] = state.requests.map((request) => ({
    leftMs: requestLeftMs(request),
    kind: "request",
    request,
  }));
  const { idleMs, process, turn } = state;
  const unattended = unattendedDue(state, policy);
  if (unattended) found.push(unattended);
  const waitMs = waitLeftMs(state);
  if (waitMs !== undefined) found.push({ leftMs: waitMs, kind: "wait" });
  if (turn && state.waiting) {
    // A session that is not kept would end with its process.
    const isIdle = process.phase === "live" && state.background.length === 0 && !policy.ephemeral;
    if (isIdle) found.push({ leftMs: policy.idleProcessMs - idleMs, kind: "idle" });
  } else if (turn) found.push(...turnDeadlines(state, turn, policy));
  else if (process.phase === "live" && state.background.length === 0) {
    found.push({ leftMs: policy.idleProcessMs - idleMs, kind: "idle" });
  } else if (process.phase === "starting") {
    // A process started for a control request, without a turn.
    found.push({ leftMs: startLeftMs(process, policy), kind: "idle" });
  }
  return found;
}

/** Returns the time until the request passes to the next approver or is denied, ms. */
function requestLeftMs(request: OpenRequest): number {
  const { leftMs, approverLeftMs } = request.clock;
  return Math.min(approverLeftMs, leftMs);
}

/** Returns the time left for the process to come up, ms. While the process waits for a slot, only `turnMaxMs` applies. */
function startLeftMs(process: { startingMs?: number; waiting?: boolean }, { initMs, turnMaxMs }: Policy): number {
  const { startingMs = 0, waiting } = process;
  return (waiting ? turnMaxMs : initMs) - startingMs;
}

function turnDeadlines({ requests, process }: SessionState, turn: Turn, policy: Policy): Deadline[] {
  const { settling, stopping } = turn;
  if (settling) return settlingDeadlines(requests, turn, policy);
  if (stopping) {
    return stopping.killed ? [] : [{ leftMs: policy.stopGraceMs - stopping.forMs, kind: "kill", turn }];
  }
  if (process.phase === "starting") {
    const reason = process.waiting ? "time_limit" : "init_timeout";
    return [{ leftMs: startLeftMs(process, policy), kind: "turn", turn, reason }];
  }
  // The clock of a turn stands still while a request is open.
  if (requests.length > 0) return [];
  const { ranMs, silentMs } = turn.clock;
  const turnMs = turn.prompt?.limits?.turnMs ?? policy.turnMs;
  const timeout: Deadline[] =
    turnMs === undefined ? [] : [{ leftMs: turnMs - ranMs, kind: "turn", turn, reason: "timeout" }];
  // `silentMs` restarts once the process comes up.
  const silence: Deadline[] = turn.unheard ? [{ leftMs: RERUN_MS - silentMs, kind: "go-on", turn }] : [];
  return [
    ...timeout,
    { leftMs: policy.turnMaxMs - ranMs, kind: "turn", turn, reason: "time_limit" },
    { leftMs: policy.inactivityMs - silentMs, kind: "turn", turn, reason: "inactivity" },
    // Comes last, so that a turn over one of its limits is not told to go on.
    ...silence,
  ];
}

/** Maximum time of a look at the folders, or of an assessment of commands, ms. Both take less, unless a disk hangs. */
const SETTLE_MS = 10_000;

/** Inactivity is no limit here, because Claude Code is silent while the server verifies. */
function settlingDeadlines(requests: readonly OpenRequest[], turn: Turn, policy: Policy): Deadline[] {
  const { forMs = 0, phase } = turn.settling ?? {};
  if (phase === "look" || phase === "judge") return [{ leftMs: SETTLE_MS - forMs, kind: "settle", turn }];
  if (requests.length > 0) return [];
  const { ranMs } = turn.clock;
  const turnMs = turn.prompt?.limits?.turnMs ?? policy.turnMs;
  const timeout: Deadline[] =
    turnMs === undefined ? [] : [{ leftMs: turnMs - ranMs, kind: "turn", turn, reason: "timeout" }];
  return [...timeout, { leftMs: policy.turnMaxMs - ranMs, kind: "turn", turn, reason: "time_limit" }];
}

/** Returns the time awake until the next deadline, ms; `undefined` without a deadline. */
export function nextDeadline(state: SessionState, policy: Policy): number | undefined {
  const left = deadlines(state, policy).map(({ leftMs }) => leftMs);
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Handles all deadlines that are due. */
export function onTick(draft: Draft): void {
  const due = deadlines(draft.state, draft.base).filter(({ leftMs }) => leftMs <= 0);
  for (const deadline of due) {
    switch (deadline.kind) {
      case "request":
        expireRequest(draft, deadline.request);
        break;
      case "turn":
        stopTurn(draft, deadline.turn, deadline.reason);
        break;
      case "kill":
        kill(draft, deadline.turn);
        break;
      case "go-on":
        if (draft.state.turn === deadline.turn && !deadline.turn.stopping) tellToContinue(draft, deadline.turn);
        break;
      case "settle":
        giveUpSettling(draft, deadline.turn);
        break;
      case "wait":
        lookAtWait(draft);
        break;
      case "idle":
        // The wait may have ended at the same time.
        if (!draft.state.turn || draft.state.waiting) closeIdleProcess(draft);
        break;
      case "unattended":
        beginUnattended(draft);
        break;
      case "unattended-over":
        endUnattended(draft, "time");
        break;
    }
  }
}

function expireRequest(draft: Draft, request: OpenRequest): void {
  const { ageMs, leftMs } = request.clock;
  if (request.denial !== undefined) return denyRequest(draft, request, "user", request.denial);
  if (leftMs > 0 && escalate(draft, request, "time")) return;
  const waited = Math.round(ageMs / 1000);
  const message = `This request was denied because it was not answered within ${String(waited)} s. Continue without it, or say what you need.`;
  denyRequest(draft, request, "timeout", message);
}

export function stopTurn(draft: Draft, turn: Turn, reason: LimitReason): void {
  if (turn.settling) return stopSettling(draft, turn, reason, "server");
  // The first of several limits passed at once decides.
  if (turn.stopping || draft.state.turn !== turn) return;
  if (draft.state.waiting) return endWait(draft, turn, stoppedEnding(reason, "server"));
  // Claude Code has not seen the prompt yet, so there is nothing to stop.
  if (turn.pending) return endTurn(draft, turn, stoppedEnding(reason, "server"));
  turn.stopping = { reason, by: "server", at: draft.at, forMs: 0, killed: false };
  // A process that is not up yet cannot receive an interrupt.
  if (draft.state.process.phase === "starting") kill(draft, turn);
  else draft.effects.push({ type: "interrupt" });
}

function kill(draft: Draft, turn: Turn): void {
  if (turn.stopping) turn.stopping.killed = true;
  draft.effects.push({ type: "kill" });
}

function closeIdleProcess(draft: Draft): void {
  const { effects, state } = draft;
  if (draft.policy.ephemeral) return expireSession(draft);
  // A process that is not up yet cannot receive a stop.
  if (state.process.phase === "starting") effects.push({ type: "kill" });
  endProcess(draft);
}
