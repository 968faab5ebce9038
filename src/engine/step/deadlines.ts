import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState, StopReason, Turn } from "../../domain/session.ts";
import { policyOfTurn } from "../policy/of-turn.ts";
import type { Policy } from "../policy/policy.ts";
import { denyRequest } from "./requests/requests.ts";
import { expireSession } from "./stop.ts";
import type { Draft } from "./draft.ts";
import { escalate } from "./requests/approval-chain.ts";
import { endProcess } from "./starting.ts";
import { endTurn, goOn, stoppedEnding } from "./turn.ts";
import { beginUnattended, endUnattended, unattendedDue } from "./unattended.ts";

/** Claude Code begins to run a turn again within a second of its start, ms. */
const RERUN_MS = 5_000;

/** Reasons for which this server stops a turn. */
type LimitReason = Exclude<StopReason, "subagents">;

type Due =
  | { kind: "request"; request: OpenRequest }
  | { kind: "turn"; turn: Turn; reason: LimitReason }
  | { kind: "kill"; turn: Turn }
  | { kind: "go-on"; turn: Turn }
  | { kind: "idle" | "unattended" | "unattended-over" };
/** `leftMs` is the time awake until then; it is due at 0. */
type Deadline = Due & { leftMs: number };

/** Read off the state, never set or cleared by hand: a deadline whose reason is gone is gone with it. */
function deadlines(state: SessionState, base: Policy): Deadline[] {
  const policy = policyOfTurn(base, state);
  const found: Deadline[] = state.requests.map((request) => ({ leftMs: leftOf(request), kind: "request", request }));
  const { idleMs, process, turn } = state;
  const unattended = unattendedDue(state, policy);
  if (unattended) found.push(unattended);
  if (turn) found.push(...turnDeadlines(state, turn, policy));
  else if (process.phase === "live" && state.background.length === 0) {
    found.push({ leftMs: policy.idleProcessMs - idleMs, kind: "idle" });
  } else if (process.phase === "starting") {
    // Started to be asked something, and not for a turn.
    found.push({ leftMs: upIn(process, policy), kind: "idle" });
  }
  return found;
}

/** Until the request goes on to the next who may answer, or is denied. */
function leftOf(request: OpenRequest): number {
  const { leftMs, approverLeftMs } = request.clock;
  return Math.min(approverLeftMs, leftMs);
}

/** Until a process has to be up; the time before there is a slot for it counts for nothing but the longest of all limits. */
function upIn(process: { startingMs?: number; waiting?: boolean }, { initMs, turnMaxMs }: Policy): number {
  const { startingMs = 0, waiting } = process;
  return (waiting ? turnMaxMs : initMs) - startingMs;
}

function turnDeadlines({ requests, process }: SessionState, turn: Turn, policy: Policy): Deadline[] {
  const { stopping } = turn;
  if (stopping) {
    return stopping.killed ? [] : [{ leftMs: policy.stopGraceMs - stopping.forMs, kind: "kill", turn }];
  }
  if (process.phase === "starting") {
    const reason = process.waiting ? "time_limit" : "init_timeout";
    return [{ leftMs: upIn(process, policy), kind: "turn", turn, reason }];
  }
  // The clock of a turn stands still while a request is open.
  if (requests.length > 0) return [];
  const { ranMs, silentMs } = turn.clock;
  const turnMs = turn.prompt?.limits?.turnMs ?? policy.turnMs;
  const timeout: Deadline[] =
    turnMs === undefined ? [] : [{ leftMs: turnMs - ranMs, kind: "turn", turn, reason: "timeout" }];
  // Counted from when its process came up.
  const silence: Deadline[] = turn.unheard ? [{ leftMs: RERUN_MS - silentMs, kind: "go-on", turn }] : [];
  return [
    ...timeout,
    { leftMs: policy.turnMaxMs - ranMs, kind: "turn", turn, reason: "time_limit" },
    { leftMs: policy.inactivityMs - silentMs, kind: "turn", turn, reason: "inactivity" },
    // Last: a turn that is over one of its limits is not told to go on.
    ...silence,
  ];
}

/** How long it is to the next deadline, ms of time awake; undefined where there is none. */
export function nextDeadline(state: SessionState, policy: Policy): number | undefined {
  const left = deadlines(state, policy).map(({ leftMs }) => leftMs);
  return left.length === 0 ? undefined : Math.min(...left);
}

/** Does what is due. */
export function onTick(draft: Draft): void {
  const due = deadlines(draft.state, draft.base).filter(({ leftMs }) => leftMs <= 0);
  for (const deadline of due) {
    switch (deadline.kind) {
      case "request":
        expire(draft, deadline.request);
        break;
      case "turn":
        stopTurn(draft, deadline.turn, deadline.reason);
        break;
      case "kill":
        kill(draft, deadline.turn);
        break;
      case "go-on":
        if (draft.state.turn === deadline.turn && !deadline.turn.stopping) goOn(draft, deadline.turn);
        break;
      case "idle":
        closeIdleProcess(draft);
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

function expire(draft: Draft, request: OpenRequest): void {
  const { ageMs, leftMs } = request.clock;
  if (request.denial !== undefined) return denyRequest(draft, request, "user", request.denial);
  if (leftMs > 0 && escalate(draft, request, "time")) return;
  const waited = Math.round(ageMs / 1000);
  const message = `This request was denied because it was not answered within ${String(waited)} s. Continue without it, or say what you need.`;
  denyRequest(draft, request, "timeout", message);
}

export function stopTurn(draft: Draft, turn: Turn, reason: LimitReason): void {
  // Of several limits that are passed at once the first has ended it.
  if (turn.stopping || draft.state.turn !== turn) return;
  // Claude Code has not seen the prompt yet: there is nothing to stop.
  if (turn.pending) return endTurn(draft, turn, stoppedEnding(reason, "server"));
  turn.stopping = { reason, by: "server", at: draft.at, forMs: 0, killed: false };
  // A process that did not come up hears no interrupt.
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
  // One that does not come up hears no stop.
  if (state.process.phase === "starting") effects.push({ type: "kill" });
  endProcess(draft);
}
