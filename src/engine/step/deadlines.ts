import type { OpenAsk } from "../../domain/permission.ts";
import type { SessionState, StopReason, Turn } from "../../domain/session.ts";
import type { Policy } from "../policy.ts";
import { denyAsk } from "./asks/asks.ts";
import { expireSession } from "./closing.ts";
import type { Draft } from "./draft.ts";
import { passOn } from "./asks/ladder.ts";
import { endProcess, endTurn, goOn, stoppedEnding } from "./turn.ts";

/** Claude Code begins to run a turn again within a second of its start, ms. */
const RERUN_MS = 5_000;

type Deadline =
  | { at: number; kind: "ask"; ask: OpenAsk }
  | { at: number; kind: "turn"; turn: Turn; reason: StopReason }
  | { at: number; kind: "kill"; turn: Turn }
  | { at: number; kind: "go-on"; turn: Turn }
  | { at: number; kind: "idle" };

/** Read off the state, never set or cleared by hand: a deadline whose reason is gone is gone with it. */
function deadlines(state: SessionState, policy: Policy): Deadline[] {
  const found: Deadline[] = state.asks.map((ask) => ({ at: dueAt(ask), kind: "ask", ask }));
  const { process, turn } = state;
  if (turn) found.push(...turnDeadlines(state, turn, policy));
  else if (process.phase === "live" && state.background.length === 0) {
    found.push({ at: state.idleSince + policy.idleProcessMs, kind: "idle" });
  } else if (process.phase === "starting") {
    // Started to be asked something, and not for a turn.
    found.push({ at: upBy(process, policy), kind: "idle" });
  }
  return found;
}

/** When the request goes on to the next who may answer, or is denied. */
function dueAt({ expiresAt, rungEndsAt = expiresAt }: OpenAsk): number {
  return Math.min(rungEndsAt, expiresAt);
}

/** When a process has to be up; the time before there is a place for it counts for nothing but the longest of all limits. */
function upBy({ since, waiting }: { since: number; waiting?: boolean }, { initMs, turnMaxMs }: Policy): number {
  return since + (waiting ? turnMaxMs : initMs);
}

function turnDeadlines({ asks, process }: SessionState, turn: Turn, policy: Policy): Deadline[] {
  const { stopping } = turn;
  if (stopping) return stopping.killed ? [] : [{ at: stopping.at + policy.stopGraceMs, kind: "kill", turn }];
  if (process.phase === "starting") {
    const reason = process.waiting ? "time_limit" : "init_timeout";
    return [{ at: upBy(process, policy), kind: "turn", turn, reason }];
  }
  // The clock of a turn stands still while somebody is asked.
  if (asks.length > 0) return [];
  const begun = turn.startedAt + turn.waitedMs;
  const turnMs = turn.prompt?.limits?.turnMs ?? policy.turnMs;
  const timeout: Deadline[] =
    turnMs === undefined ? [] : [{ at: begun + turnMs, kind: "turn", turn, reason: "timeout" }];
  // `lastActivityAt` is when its process came up.
  const silence: Deadline[] = turn.unheard ? [{ at: turn.lastActivityAt + RERUN_MS, kind: "go-on", turn }] : [];
  return [
    ...timeout,
    { at: begun + policy.turnMaxMs, kind: "turn", turn, reason: "time_limit" },
    { at: turn.lastActivityAt + policy.inactivityMs, kind: "turn", turn, reason: "inactivity" },
    // Last: a turn that is over one of its limits is not told to go on.
    ...silence,
  ];
}

export function nextDeadline(state: SessionState, policy: Policy): number | undefined {
  const times = deadlines(state, policy).map(({ at }) => at);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Does what is due. */
export function onTick(draft: Draft): void {
  const due = deadlines(draft.state, draft.policy).filter(({ at }) => at <= draft.at);
  for (const deadline of due) {
    switch (deadline.kind) {
      case "ask":
        expire(draft, deadline.ask);
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
    }
  }
}

function expire(draft: Draft, ask: OpenAsk): void {
  if (ask.expiresAt > draft.at && passOn(draft, ask, "time")) return;
  const waited = Math.round((draft.at - ask.createdAt) / 1000);
  const message = `Nobody answered this request within ${String(waited)} s, so it was denied. Go on without it, or say what you need.`;
  denyAsk(draft, ask, "timeout", message);
}

function stopTurn(draft: Draft, turn: Turn, reason: StopReason): void {
  // Of several limits that are passed at once the first has ended it.
  if (turn.stopping || draft.state.turn !== turn) return;
  // Nobody has seen its prompt yet: there is nothing to stop.
  if (turn.pending) return endTurn(draft, turn, stoppedEnding(reason, "server"));
  turn.stopping = { reason, by: "server", at: draft.at, killed: false };
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
