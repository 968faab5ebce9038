import type { BackgroundTask } from "../../domain/event.ts";
import type { Turn } from "../../domain/running-turn.ts";
import type { Draft } from "./draft.ts";
import { settleAllRequests } from "./requests/requests.ts";
import type { Ending } from "./endings.ts";

/** Time for subagents to end after their turn, ms. */
const STOP_MS = 2_000;

/**
 * Stops subagents that Claude Code has left running at the end of a turn, because they would go on asking the model. The turn
 * ends after them; a process with a subagent still running after `STOP_MS` is killed.
 */
export function stopSubagents(draft: Draft, turn: Turn, agents: readonly string[]): void {
  settleAllRequests(draft, "withdrawn");
  turn.stopping ??= { reason: "subagents", by: "server", at: draft.at, forMs: 0, killed: false };
  turn.stopping.forMs = Math.max(turn.stopping.forMs, forMsAtStop(draft));
  draft.effects.push({ type: "stop-tasks", taskIds: agents });
}

/** Returns the `forMs` that leaves `STOP_MS` until the process is killed. */
export function forMsAtStop({ policy }: Draft): number {
  return Math.max(0, policy.stopGraceMs - STOP_MS);
}

/** True if Claude Code has ended the turn, and only subagents are being stopped. */
export function isEndedBySelf({ stopping }: Turn): boolean {
  return stopping?.reason === "subagents";
}

/** Adds to `ending` the consequences of the process's end: a killed subagent, lost background work. */
export function addLostWork(ending: Ending, turn: Turn, tasks: readonly BackgroundTask[]): Ending {
  const killed = isEndedBySelf(turn) && turn.stopping?.killed ? KILLED : undefined;
  const lost = tasks.length === 0 ? undefined : lostWorkText(tasks);
  const message = [ending.message, killed, lost].filter((each) => each !== undefined).join(" ");
  return message === "" ? ending : { ...ending, message };
}

const KILLED = "A subagent did not end with the turn, so Claude Code was closed. The next prompt resumes the session.";

export function lostWorkText(tasks: readonly BackgroundTask[], why = ""): string {
  const names = tasks.map(({ description }) => description).join(", ");
  return `Background work was ended with its process: ${names}. ${why}Start it again if it is still needed.`;
}
