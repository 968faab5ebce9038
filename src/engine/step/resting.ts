import type { CommandOf } from "../../domain/command.ts";
import type { RestRequest } from "../../domain/control.ts";
import type { SessionState } from "../../domain/session.ts";
import { accept, emit, type Draft } from "./draft.ts";
import { interruptTurn } from "./interrupting.ts";
import { endProcess, holdQueue } from "./turn.ts";

/** The session is to go without its process once nothing runs; the next prompt resumes it. */
export function rest(draft: Draft, command: CommandOf<"control">, { why }: RestRequest): void {
  const { policy, state } = draft;
  const cursor = state.lastEventId + 1;
  if (state.closed) return accept(draft, command, cursor, {});
  // Nothing is kept of an ephemeral session but its process: only what may not go on takes it.
  if (why === "barred") bar(draft);
  if (state.process.phase !== "none" && (!policy.ephemeral || why === "barred")) {
    state.resting = true;
    if (why !== undefined) state.restingFor = why;
  }
  accept(draft, command, cursor, {});
}

/** What runs goes on to its end; what has not begun does not begin. */
function bar(draft: Draft): void {
  const { process, queue, turn } = draft.state;
  if (process.phase === "none" && queue.every(({ held }) => held)) return;
  const hasBegun = process.phase !== "ending" && !(process.phase === "starting" && process.waiting === true);
  if (turn && !hasBegun) interruptTurn(draft, turn, "operator");
  holdQueue(draft);
  const what = "Its process ends after the current turn; waiting prompts are held.";
  const advice = "Change its mode (set_permission_mode) and release them, or send a new prompt.";
  const message = `The operator no longer allows the permission mode of this session. ${what} ${advice}`;
  emit(draft, { type: "notice", data: { kind: "warning", message } });
}

/** Closes the process that is to rest once nothing runs in it any more; its background too where that may not hold it. */
export function restWhenDone(draft: Draft): void {
  const { process, queue, resting, restingFor, turn } = draft.state;
  if (!resting) return;
  if (process.phase !== "starting" && process.phase !== "live") return stayAwake(draft.state);
  const isUp = process.phase === "live" || restingFor === "barred";
  if (!isUp || turn || queue.some(({ held }) => !held) || isHeldUp(draft)) return;
  if (restingFor === "room") tellOfBackground(draft);
  stayAwake(draft.state);
  endProcess(draft);
}

function isHeldUp({ state }: Draft): boolean {
  return state.background.length > 0 && state.restingFor === undefined;
}

function tellOfBackground(draft: Draft): void {
  const tasks = draft.state.background;
  if (tasks.length === 0) return;
  const names = tasks.map(({ description }) => description).join(", ");
  const why = "Other sessions waited for a slot (--max-live), and no other could be freed.";
  const message = `Background work was ended with its process: ${names}. ${why} Start it again if it is still needed.`;
  emit(draft, { type: "notice", data: { kind: "warning", message, details: { tasks } } });
}

/** Takes the wish to rest back. */
export function stayAwake(state: SessionState): void {
  delete state.resting;
  delete state.restingFor;
}
