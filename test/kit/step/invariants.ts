import { isDeepStrictEqual } from "node:util";
import { SessionEvent } from "../../../src/domain/event.ts";
import { SessionState, SessionStatus, statusOf } from "../../../src/domain/session.ts";
import { VERIFICATION_TOOL } from "../../../src/domain/verification.ts";
import type { Policy } from "../../../src/engine/policy/policy.ts";
import { type Input, nextDeadline, type Step, step } from "../../../src/engine/step.ts";
import { elapse } from "../../../src/engine/step/time.ts";
import { elapseAttendance } from "../../../src/engine/step/unattended.ts";
import { EVIDENCE_INVARIANTS } from "./evidence-invariants.ts";
import { LIMIT_INVARIANTS } from "./limit-invariants.ts";
import { type Case, count, type Invariant, ofType } from "./invariant.ts";

/** Invariants of every step from every state. Tests report a broken invariant by its name. */

const STATE_BYTES = 16_384;

/** Returns `state` after only time has passed. */
export function aged(state: SessionState, { at, elapsedMs }: Input, policy: Policy): SessionState {
  const older = structuredClone(state);
  elapse(older, elapsedMs, at);
  elapseAttendance(older, elapsedMs, policy);
  return older;
}

const INVARIANTS: Readonly<Record<string, Invariant>> = {
  ...EVIDENCE_INVARIANTS,
  ...LIMIT_INVARIANTS,
  "the state matches its schema, also as JSON": ({ after }) =>
    isDeepStrictEqual(SessionState.parse(JSON.parse(JSON.stringify(after))), after),
  "every event matches its schema, also as JSON": ({ events }) =>
    events.every((event) => isDeepStrictEqual(SessionEvent.parse(JSON.parse(JSON.stringify(event))), event)),
  "the state takes at most 16 KiB": ({ after }) => Buffer.byteLength(JSON.stringify(after)) <= STATE_BYTES,
  "a repeated step from the state as JSON has an equal result": (the) => {
    const before: SessionState = JSON.parse(JSON.stringify(the.before));
    const again = step(before, the.input, the.policy, the.known);
    return isDeepStrictEqual(again, {
      state: the.after,
      events: the.events,
      effects: the.effects,
      ledger: the.ledger,
    });
  },
  "the last event id grows by the number of events": ({ before, after, events }) =>
    after.lastEventId === before.lastEventId + events.length,
  "a command is answered exactly once, anything else not at all": ({ input, effects }) => {
    const answered = ofType(effects, "reply").map(({ commandId }) => commandId);
    return isDeepStrictEqual(answered, answeredBy(input, effects));
  },
  "the reply to a command points at its first event, or at the next event if it did nothing": (the) => {
    const [reply] = ofType(the.effects, "reply");
    if (!reply?.reply.ok || isRepeated(the)) return true;
    return reply.reply.cursor === the.before.lastEventId + 1;
  },
  "a refused command changes nothing except elapsed time": ({ before, after, events, effects, input, policy }) => {
    const [reply] = ofType(effects, "reply");
    return (
      reply?.reply.ok !== false ||
      (events.length === 0 && effects.length === 1 && isDeepStrictEqual(aged(before, input, policy), after))
    );
  },
  "requests are open only during a turn": ({ after }) => after.turn !== null || after.requests.length === 0,
  "a process that is ending or gone has no open requests": ({ after: { requests, process } }) =>
    ["live", "starting"].includes(process.phase) || requests.every(({ toolName }) => toolName === VERIFICATION_TOOL),
  "the clock of a turn stands still during open requests and without a slot, and otherwise counts elapsed time": (
    the,
  ) => {
    const { after, before, input } = the;
    if (!before.turn || after.turn?.id !== before.turn.id) return true;
    const { process } = before;
    const stands =
      before.waiting !== undefined ||
      before.requests.length > 0 ||
      (process.phase === "starting" && process.waiting === true);
    const lasted = after.turn.clock.lastedMs - before.turn.clock.lastedMs;
    const ran = after.turn.clock.ranMs - before.turn.clock.ranMs;
    return lasted === input.elapsedMs && ran === (stands ? 0 : input.elapsedMs);
  },
  "every closed request was answered once, and every new request was asked once": ({ before, after, events }) => {
    const asked = count(events, ["permission.asked", "question.asked"]).map(requestId);
    const answered = count(events, ["permission.answered", "question.answered"]).map(requestId);
    const open = [...before.requests.map((request) => request.requestId), ...asked];
    return isDeepStrictEqual(
      open.toSorted(),
      [...answered, ...after.requests.map((request) => request.requestId)].toSorted(),
    );
  },
  "every ended turn was ended once, and every running turn was started once": ({ before, after, events }) => {
    const started = count(events, ["turn.started"]).map(turnId);
    const ended = count(events, ["turn.ended"]).map(turnId);
    const known = [before.turn?.id, ...started].filter((id) => id !== undefined);
    return isDeepStrictEqual(
      known,
      [...ended, after.turn?.id].filter((id) => id !== undefined),
    );
  },
  "`lastTurnEventId` is the id of the last turn's end": ({ before, after, events }) => {
    const index = events.findLastIndex(({ type }) => type === "turn.ended");
    return after.lastTurnEventId === (index === -1 ? before.lastTurnEventId : before.lastEventId + index + 1);
  },
  "every prompt is run or dropped once, or still waits": ({ before, after, events }) => {
    const queued = [...before.queue.map((each) => each.promptId), ...count(events, ["prompt.queued"]).map(promptId)];
    const begun = count(events, ["turn.started"]).map(({ data }) => data);
    const started = begun.flatMap(({ promptIds, turnId: id }) => (promptIds.includes(id) ? promptIds : []));
    const gone = [...started, ...count(events, ["prompt.dropped", "prompt.steered"]).map(promptId)];
    // Prompts that are not held overtake held ones.
    return isDeepStrictEqual(queued.toSorted(), [...gone, ...after.queue.map((each) => each.promptId)].toSorted());
  },
  "a prompt waits only behind a turn, when it is held, or behind background work whose process allows more than its client":
    ({ after: { background, closed, queue, senders = {}, turn } }) => {
      const isStricter = (sender = "") => background.length > 0 && senders[sender]?.policy !== undefined;
      return queue.every(({ held, sender }) => !closed && (held === true || turn !== null || isStricter(sender)));
    },
  "the state has exactly the senders that prompts name": ({
    after: { queue, refused, sender, senders = {}, turn },
  }) => {
    const prompts = [
      ...queue,
      ...(turn?.prompt ? [turn.prompt] : []),
      ...(turn?.steered ?? []),
      ...(refused?.prompt ? [refused.prompt] : []),
      { sender },
    ];
    return isDeepStrictEqual(new Set(prompts.flatMap((each) => each.sender ?? [])), new Set(Object.keys(senders)));
  },
  "a closed session stays closed and reports only the exit of its process": ({ before, after, events }) =>
    !before.closed || (isDeepStrictEqual(before.closed, after.closed) && events.every(isExit)),
  "a session is closed once, and its close is the last event of the step": ({ before, after, events }) => {
    const closes = !before.closed && after.closed !== undefined;
    return closes
      ? events.at(-1)?.type === "session.closed" && count(events, ["session.closed"]).length === 1
      : count(events, ["session.closed"]).length === 0;
  },
  "at most one process is started, and becomes the present one": ({ before, after, effects }) => {
    const starts = ofType(effects, "start");
    const [start] = starts;
    if (!start) return after.processCount === before.processCount;
    const { process } = after;
    return starts.length === 1 && process.phase === "starting" && process.id === start.processId;
  },
  "each prompt is handed over once, to a process that can take it, for a turn that is not stopping": ({
    after,
    effects,
  }) => {
    const pushes = ofType(effects, "push");
    const takes = after.process.phase === "starting" || after.process.phase === "live";
    const ids = new Set(pushes.map((push) => push.promptId));
    return ids.size === pushes.length && pushes.every((push) => takes && runsOn(after, push.promptId));
  },
  "a process is started for a turn, or for a control request": ({ after, effects }) =>
    ofType(effects, "start").length === 0 || after.turn !== null || ofType(effects, "control").length === 1,
  "a starting process has a deadline": ({ after, policy }) =>
    after.process.phase !== "starting" ||
    nextDeadline(after, policy) !== undefined ||
    after.closed !== undefined ||
    after.turn?.stopping?.killed === true,
  "control requests go only to a process that can receive them": ({ after: { closed, process }, effects }) =>
    ofType(effects, "control").length === 0 || (!closed && (process.phase === "starting" || process.phase === "live")),
  "no background work without a process": ({ after }) =>
    after.process.phase !== "none" || after.background.length === 0,
  "a node that takes over a session first ends the dead owner's process": ({ before, input, effects }) => {
    const [leftover, ...others] = ofType(effects, "end-leftover");
    const { process } = before;
    const isTaken = input.type === "recovered" || (input.type === "attached" && !canAttach(before));
    const isIncomplete = loses(before, input);
    if ((!isTaken && !isIncomplete) || process.phase === "none") return leftover === undefined;
    const first = isIncomplete ? effects[1] : effects[0];
    return others.length === 0 && first === leftover && leftover?.processId === process.id;
  },
  "a node restarts only a process that was never recorded, and leaves the turn unchanged": ({
    before,
    after,
    input,
    effects,
  }) => {
    if (input.type !== "recovered" || ofType(effects, "start").length === 0 || before.turn?.pending) return true;
    // The turn is over, and another turn follows.
    if (after.turn?.id !== before.turn?.id) return true;
    const { process } = before;
    const isUnrecorded = process.phase === "starting" && process.pid === undefined;
    return input.mayStart === true && isUnrecorded && isDeepStrictEqual(before.turn?.prompt, after.turn?.prompt);
  },
  "a node that attaches drops only prompts that end with their client, and acts only on the attached process": ({
    before,
    after,
    input,
    events,
    effects,
  }) => {
    if (input.type !== "attached" || !canAttach(before)) return ofType(effects, "reattach").length === 0;
    const [first, ...others] = effects;
    const told = new Set(["push", "interrupt", "kill", "stop", "look", "judge"]);
    return (
      first?.type === "reattach" &&
      others.every(({ type }) => told.has(type)) &&
      events.every(({ type }) => type === "notice" || type === "prompt.dropped") &&
      before.turn?.id === after.turn?.id &&
      isDeepStrictEqual(before.process, { ...after.process, ...startingMsOf(before) }) &&
      before.requests.length === after.requests.length
    );
  },
  "the line of a process never goes back": ({ before: { process: one }, after: { process: other } }) =>
    one.phase === "none" || other.phase === "none" || one.id !== other.id || (one.line ?? 0) <= (other.line ?? 0),
  "a request that is answered again was answered before, and is not open": ({ before, effects }) =>
    ofType(effects, "answer-again").every(
      ({ eventId, requestId: id }) =>
        before.answered.some((answer) => answer.requestId === id && answer.eventId === eventId) &&
        before.requests.every((request) => request.requestId !== id),
    ),
  "a lost turn is run again at most once": ({ before, events }) => {
    const isAgain = (id: string) =>
      events.some(({ data }) => "promptIds" in data && data.turnId === id && !data.promptIds.includes(id));
    return !before.turn?.rerun || !count(events, ["turn.started"]).map(turnId).some(isAgain);
  },
  "the next deadline is a finite time or undefined": ({ after, policy }) => {
    const due = nextDeadline(after, policy);
    return due === undefined || Number.isFinite(due);
  },
  "repeated ticks at one time leave nothing overdue": ({ input, after, known, policy }) => {
    if (input.type !== "tick") return true;
    let state = after;
    for (let n = 0; n < 4; n += 1) state = step(state, { ...input, elapsedMs: 0 }, policy, known).state;
    const due = nextDeadline(state, policy);
    return due === undefined || due > 0;
  },
  "the session has a status": ({ after }) => SessionStatus.safeParse(statusOf(after)).success,
  "totals only grow": ({ before, after }) =>
    after.totals.turns >= before.totals.turns && after.totals.costUsd >= before.totals.costUsd,
};

/** Returns the names of the invariants that the step breaks. */
export function findFaults(
  before: SessionState,
  input: Input,
  { known, policy }: Pick<Case, "known" | "policy">,
  done: Step,
): string[] {
  const { state: after, events, effects, ledger } = done;
  const the = { before, after, input, known, policy, events, effects, ledger };
  return Object.keys(INVARIANTS).filter((name) => !INVARIANTS[name]?.(the));
}

/** True if the process has a `shim`, unless its turn ends with its client. */
function canAttach({ process, turn }: SessionState): boolean {
  return process.phase !== "none" && process.shim !== undefined && turn?.prompt?.limits?.endWithClient !== true;
}

/** True if the signal reports lost messages of the present process. */
function loses({ closed, process }: SessionState, input: Input): boolean {
  if (input.type !== "signal" || input.signal.type !== "attached" || input.signal.lost === 0) return false;
  return !closed && process.phase !== "none" && process.id === input.processId;
}

/** Keeps the time that a process takes to start. */
function startingMsOf({ process }: SessionState): { startingMs?: number } {
  return process.phase === "none" || process.startingMs === undefined ? {} : { startingMs: process.startingMs };
}

function isRepeated({ before, input }: Case): boolean {
  if (input.type !== "command" || input.command.kind !== "prompt") return false;
  const { idempotencyKey } = input.command.data;
  return before.recentKeys.some(({ key }) => key === idempotencyKey);
}

function runsOn({ turn }: SessionState, id: string): boolean {
  return turn?.awaiting.includes(id) === true && turn.stopping === undefined;
}

/** Returns the ids of answered commands: a command passed to Claude Code is answered when Claude Code has answered. */
function answeredBy(input: Input, effects: Case["effects"]): string[] {
  if (input.type === "controlled") return [input.commandId];
  return input.type === "command" && ofType(effects, "control").length === 0 ? [input.command.id] : [];
}

function isExit(event: SessionEvent): boolean {
  return event.type === "process.exited";
}

const requestId = ({ data }: { data: { requestId: string } }): string => data.requestId;
const turnId = ({ data }: { data: { turnId: string } }): string => data.turnId;
const promptId = ({ data }: { data: { promptId: string } }): string => data.promptId;

/** Freezes `value` deeply: writes throw. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
