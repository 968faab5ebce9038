import type { CommandOf } from "../../domain/command.ts";
import type { AnsweredBy, PermissionRequest } from "../../domain/permission.ts";
import { promptsOf, verifiedPrompt } from "../../domain/session.ts";
import type { Turn } from "../../domain/running-turn.ts";
import { VERIFICATION_TOOL, type VerificationStatus, type VerifiedCommand } from "../../domain/verification.ts";
import { judgeCommands, type CommandsVerdict } from "../policy/judge-commands.ts";
import { rememberedRule } from "./requests/ruling.ts";
import { openRequest, settleAllRequests, settleRequest } from "./requests/requests.ts";
import { accept, emit, refuse, TURN_RUNS, type Draft, type Happening } from "./draft.ts";
import { budgetOf, limitText, reserveLimit } from "./limits.ts";
import { enterPhase, lookAndEnd, onBaseline, onLooked, turnInPhase } from "./look.ts";
import {
  hasRoom,
  mayTake,
  noteEnvironment,
  noteLastSender,
  noteReach,
  noteSender,
  senderOf,
  CROWDED,
} from "./senders.ts";
import { endProcess, startProcess } from "./starting.ts";
import { beginTurn, endTurn, siblingOf, steer } from "./turn.ts";
import { endingOf, stoppedEnding, type Ending, type LimitReason } from "./endings.ts";
import { attend, isUnattendedOver } from "./unattended.ts";

/**
 * Ends turns. A turn that is done is verified first, if its session or prompt has commands for that: the commands are assessed,
 * allowed by rules or approvers, and run; a red run goes back to Claude Code as a prompt of the same turn. Then the server
 * looks at the folders for the receipt. If Claude Code goes on meanwhile, everything begins anew once it is idle.
 */

/** Ends the turn once Claude Code is idle, or gone after its result. */
export function settleTurn(draft: Draft, turn: Turn, ending: Ending = endingOf(turn)): void {
  if (ending.outcome !== "done" || !isVerified(draft, turn)) return lookAndEnd(draft, turn, ending);
  // An idle Claude Code waits for no answer.
  settleAllRequests(draft, "withdrawn");
  turn.verification ??= { runs: 0, of: 0 };
  if (draft.state.background.length > 0) return conclude(draft, turn, "refused", BACKGROUND);
  judgeCommandsOf(draft, turn, ending);
}

const BACKGROUND = "Background work still runs, so the commands could see a half of it.";

function isVerified({ policy, state }: Draft, { origin }: Turn): boolean {
  if (origin === "verify" || verifiedPrompt(state)) return true;
  return origin === "self" ? policy.verify?.ownTurns === true : policy.verify !== undefined;
}

type InputOf<T extends Happening["type"]> = Extract<Happening, { type: T }>;

/** Handles what the server has seen at the beginning or the end of a turn. */
export function onEvidence(draft: Draft, input: InputOf<"baseline" | "judged" | "looked" | "verified">): void {
  if (input.type === "baseline") onBaseline(draft, input);
  else if (input.type === "judged") onJudged(draft, input);
  else if (input.type === "verified") onVerified(draft, input);
  else onLooked(draft, input);
}

/** Runs the commands if rules, or an earlier answer, allow all of them. Otherwise asks the approvers, once a turn. */
function onJudged(draft: Draft, input: InputOf<"judged">): void {
  const { turn, ending } = turnInPhase(draft, input) ?? {};
  if (!turn?.verification || !ending) return;
  if ("refused" in input) return conclude(draft, turn, "refused", input.refused);
  const { commands, mode, of, own } = input;
  const { cwd, rules } = draft.policy;
  turn.verification.of = of;
  const texts = commands.map(({ command }) => command);
  const remembered = (request: PermissionRequest, exactly: boolean) => rememberedRule(draft, request, exactly);
  const verdict = judgeCommands({ commands, rules, own, mode, cwd, remembered });
  if (verdict.behavior === "deny") return conclude(draft, turn, "denied", verdict.message);
  if (verdict.behavior === "allow" || turn.verification.allowed === sourceOf(draft)) {
    emit(draft, {
      type: "verification.started",
      data: { turnId: turn.id, attempt: turn.verification.runs + 1, of, commands: texts },
    });
    return void draft.effects.push({ type: "verify", turnId: turn.id, number: enterPhase(turn, "verify", ending) });
  }
  const requestId = `${turn.id}.verify.${String(enterPhase(turn, "ask", ending))}`;
  turn.verification.requestId = requestId;
  openRequest(draft, {
    requestId,
    kind: "permission",
    toolName: VERIFICATION_TOOL,
    toolUseId: "",
    input: { commands: texts },
    decisionReason: reasonToAsk(verdict),
    risk: verdict.risk,
  });
}

function reasonToAsk(verdict: CommandsVerdict): string {
  const reason = "The server runs these commands to verify the turn.";
  if (verdict.behavior !== "ask" || verdict.unclear === undefined) return reason;
  return `${reason} One cannot be checked against ${verdict.rule ?? "a rule"}: ${verdict.unclear}.`;
}

/** Goes on once the request for the commands is answered. Called after each step. */
export function followRequest(draft: Draft): void {
  const { answered, requests, turn } = draft.state;
  const { requestId } = turn?.verification ?? {};
  if (turn?.settling?.phase !== "ask" || !turn.verification) return;
  if (requests.some((open) => open.requestId === requestId)) return;
  const answer = answered.find((each) => each.requestId === requestId);
  if (answer?.behavior !== "allow") return conclude(draft, turn, "denied", `Denied by ${answer?.by ?? "server"}.`);
  turn.verification.allowed = sourceOf(draft);
  judgeCommandsOf(draft, turn, turn.settling.ending);
}

/** Returns the event with the commands; 0 for the session's. A prompt that joins the turn can bring commands of its own. */
function sourceOf({ state }: Draft): number {
  return verifiedPrompt(state)?.eventId ?? 0;
}

function judgeCommandsOf({ effects }: Draft, turn: Turn, ending: Ending): void {
  effects.push({ type: "judge", turnId: turn.id, number: enterPhase(turn, "judge", ending) });
}

function onVerified(draft: Draft, input: InputOf<"verified">): void {
  const { turn, ending } = turnInPhase(draft, input) ?? {};
  if (!turn?.verification || !ending) return;
  const { commands, message, status } = input.outcome;
  turn.verification.runs += 1;
  const { of, runs } = turn.verification;
  record(draft, turn, { status: status === "stopped" ? "interrupted" : status, commands, ...(message && { message }) });
  if (status === "passed") return lookAndEnd(draft, turn, ending);
  const red = commands.at(-1);
  if (status === "lost" || status === "stopped" || !red || runs >= of) return fail(draft, turn, redText(red, message));
  const bound = boundPassed(draft, turn);
  if (bound) return lookAndEnd(draft, turn, stoppedEnding(bound, "server"));
  repair(draft, turn, red);
}

interface Recorded {
  readonly status: VerificationStatus;
  readonly commands: VerifiedCommand[];
  readonly message?: string;
}

function record(draft: Draft, turn: Turn, { commands, message, status }: Recorded): void {
  const { of = 0, runs = 0 } = turn.verification ?? {};
  const verification = { status, attempts: runs, of, commands, ...(message !== undefined && { message }) };
  const eventId = emit(draft, { type: "verification.ended", data: { turnId: turn.id, verification } });
  if (turn.verification) turn.verification.eventId = eventId;
}

/** Ends the turn without a run. The work is done but unproved, which a warning tells. */
function conclude(draft: Draft, turn: Turn, status: "denied" | "refused", message: string): void {
  record(draft, turn, { status, commands: [], message });
  warnUnverified(turn, status, message);
  lookAndEnd(draft, turn, turn.settling?.ending ?? { outcome: "done" });
}

function warnUnverified(turn: Turn, status: VerificationStatus, why: string): void {
  turn.warnings = [`The turn was not verified (${status}): ${why}`, ...(turn.warnings ?? [])];
}

function fail(draft: Draft, turn: Turn, message: string): void {
  lookAndEnd(draft, turn, {
    outcome: "failed",
    errorSubtype: "verification_failed",
    category: "unknown",
    message: `The verification failed: ${message}`,
  });
}

function redText(red: VerifiedCommand | undefined, message = "the commands could not be run."): string {
  if (!red) return message;
  const how = red.exit === null ? `was ended by ${red.signal ?? "the server"}` : `exited with ${String(red.exit)}`;
  return `${red.command.slice(0, 200)} ${how}.`;
}

/** Returns the bound that a repair would pass: of the turn's cost, or of unattended work. */
function boundPassed(draft: Draft, turn: Turn): LimitReason | undefined {
  const { costUsd } = turn;
  const budgetUsd = budgetOf(draft.policy, turn);
  if (budgetUsd !== undefined && costUsd >= budgetUsd) return "budget";
  return isUnattendedOver(draft) ? "unattended" : undefined;
}

/** Sends the red command back to Claude Code, as a prompt of the same turn. */
function repair(draft: Draft, turn: Turn, red: VerifiedCommand): void {
  const { state } = draft;
  // A process on its way out takes no prompt.
  if (state.process.phase === "ending") return fail(draft, turn, redText(red));
  // The first repair of a verification on demand is what a new turn is otherwise: the first work of Claude.
  const limit = turn.origin === "verify" && turn.numTurns === 0 ? reserveLimit(draft) : undefined;
  if (limit) return fail(draft, turn, `${redText(red)} It was not given to Claude Code. ${limitText(limit)}`);
  const promptId = repairIdOf(turn, new Set(promptsOf(state).map((each) => each.promptId)));
  const text = `${REPAIR}\n\n$ ${red.command}\n(${redText(red)})\n\n${red.tail}`;
  const eventId = emit(draft, { type: "prompt.queued", data: { promptId, text, via: "verification" } });
  delete turn.settling;
  if (state.process.phase === "none") startProcess(draft);
  steer(draft, { promptId, eventId });
}

/** Returns an id that no prompt of the turn has. Of a turn that is run again, earlier repairs count too. */
function repairIdOf({ id, prompt }: Turn, taken: ReadonlySet<string>): string {
  const first = prompt?.promptId ?? id;
  // `tellToContinue` has distance 1.
  for (let distance = 2; distance < 15; distance += 1) {
    const found = siblingOf(first, distance);
    if (!taken.has(found)) return found;
  }
  return siblingOf(first, 15);
}

const REPAIR =
  "The server has run the commands that must pass before this turn is done, and one of them failed. Repair the cause; do not weaken the commands or the tests. Then end your turn: the server runs the commands again. The end of the output:";

/** Withdraws what the end of the turn waits for, because Claude Code goes on with the turn. */
export function goOn(draft: Draft): void {
  const { turn } = draft.state;
  if (!turn?.settling) return;
  leavePhase(draft, turn);
  delete turn.settling;
}

/** Ends a phase that has taken too long: the turn has no receipt, or no verification. */
export function giveUpSettling(draft: Draft, turn: Turn): void {
  if (draft.state.turn !== turn || !turn.settling) return;
  if (turn.settling.phase === "look") endTurn(draft, turn, turn.settling.ending);
  else conclude(draft, turn, "refused", "The commands could not be judged in time.");
}

/** Ends the turn without a look, because the session or its server ends. Work that was over keeps its ending. */
export function endNow(draft: Draft, turn: Turn, ending: Ending, by: AnsweredBy): void {
  const { settling } = turn;
  if (settling?.phase === "look") return endTurn(draft, turn, settling.ending, by);
  if (settling) {
    leavePhase(draft, turn);
    record(draft, turn, { status: "interrupted", commands: [] });
    if (ending.outcome === "done") warnUnverified(turn, "interrupted", "The session has ended.");
  }
  endTurn(draft, turn, ending, by);
}

/** Stops a turn whose work is over. A look at the folders is left to its end. */
export function stopSettling(draft: Draft, turn: Turn, reason: LimitReason, by: string): void {
  if (turn.settling?.phase === "look") return;
  leavePhase(draft, turn);
  record(draft, turn, { status: reason === "interrupt" ? "interrupted" : "timeout", commands: [] });
  lookAndEnd(draft, turn, stoppedEnding(reason, by));
}

function leavePhase(draft: Draft, { settling, verification }: Turn): void {
  const open = draft.state.requests.find(({ requestId }) => requestId === verification?.requestId);
  if (open) settleRequest(draft, open, { behavior: "deny", by: "withdrawn" });
  if (settling?.phase === "verify") draft.effects.push({ type: "stop-checks" });
}

/** Begins the present phase anew at an owner that has taken the session over. An open request stays open. */
export function settleAgain(draft: Draft, turn: Turn): void {
  const { ending, phase } = turn.settling ?? {};
  if (!ending || phase === "ask") return;
  if (phase === "look") lookAndEnd(draft, turn, ending);
  else judgeCommandsOf(draft, turn, ending);
}

/** Runs commands on demand, as a turn without a prompt. */
export function onVerify(draft: Draft, command: CommandOf<"verify">): void {
  const { policy, state } = draft;
  const { environmentId, limits, turnId, verify } = command.data;
  const cursor = state.lastEventId + 1;
  if (state.closed) return refuse(draft, command, "CANCELLED", `The session was ${state.closed.reason}.`);
  if (state.turn?.id === turnId) return accept(draft, command, state.turn.eventId ?? cursor);
  if (state.turn) return refuse(draft, command, "SESSION_BUSY", TURN_RUNS);
  if (!verify && !policy.verify) return refuse(draft, command, "INVALID_ARGUMENT", NO_COMMANDS);
  const sender = senderOf(draft, command.data);
  if (!hasRoom(state, sender)) return refuse(draft, command, "SESSION_BUSY", CROWDED);
  noteReach(state, limits);
  attend(draft);
  noteLastSender(state, noteSender(state, sender));
  if (state.process.phase === "none") noteEnvironment(state, environmentId);
  // Repairs need a process under the caller's terms.
  if (state.background.length === 0 && !mayTake(draft, sender)) endProcess(draft);
  settleTurn(draft, beginTurn(draft, turnId, { verify: verify ?? "own" }), { outcome: "done" });
  accept(draft, command, cursor);
}

const NO_COMMANDS = "commands: the session has none of its own (verify). Give the commands to run.";
