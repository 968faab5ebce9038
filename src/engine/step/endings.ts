import type { TurnEnded } from "../../domain/event.ts";
import type { StopReason, Turn } from "../../domain/running-turn.ts";
import type { SessionState } from "../../domain/session.ts";
import type { AgentResult } from "../../domain/turn.ts";

/** Words for the ends of turns. */

/** Outcome of a turn, without the figures of `turn.ended`. */
export type Ending = Pick<TurnEnded, "outcome" | "errorSubtype" | "category" | "code" | "limit" | "message">;

export function outcomeOf(result: AgentResult): NonNullable<Turn["last"]> {
  if (result.failure) {
    const { category, message, subtype: errorSubtype } = result.failure;
    return { outcome: "failed", errorSubtype, category, message };
  }
  if (!result.isError) return { outcome: "done" };
  const { limit } = result;
  if (limit) return { outcome: "failed", errorSubtype: "usage_limit", category: "limit", limit };
  if (result.terminalReason?.startsWith("aborted")) return { outcome: "interrupted", errorSubtype: "interrupted" };
  const errorSubtype = result.subtype === "success" ? (result.terminalReason ?? "error") : result.subtype;
  return { outcome: "failed", errorSubtype, ...(result.category && { category: result.category }) };
}

/** Returns the ending of a turn whose Claude Code is idle, or gone after its result. `stopping` decides, otherwise the last result. */
export function endingOf({ last, stopping }: Turn): Ending {
  if (stopping && stopping.reason !== "subagents") return stoppedEnding(stopping.reason, stopping.by);
  return last ?? { outcome: "done" };
}

/** Reasons for which a turn is stopped before its work is over. */
export type LimitReason = Exclude<StopReason, "subagents">;

export function stoppedEnding(reason: LimitReason, by: string): Ending {
  switch (reason) {
    case "timeout":
      return timedOut("timeout", "limit", "The turn took longer than its timeout allows and was ended.");
    case "budget":
      return {
        outcome: "failed",
        errorSubtype: "error_max_budget_usd",
        category: "limit",
        message: "The turn has spent its budget (maxBudgetUsd, or its share of the day's budget) and was ended.",
      };
    case "interrupt":
      return { outcome: "interrupted", errorSubtype: "interrupted", message: `The turn was interrupted by ${by}.` };
    case "unattended":
      return {
        outcome: "interrupted",
        errorSubtype: "unattended_limit",
        message: "No client followed the session, and it passed a bound for unattended work. Reply to it to go on.",
      };
    case "plan_reserve":
      return heldBack("plan_reserve", "The rest of the weekly window is reserved (planReserve). Reply to go on.");
    case "overage":
      return heldBack(
        "overage",
        "Requests are paid beyond the plan, which planReserve does not allow. Reply to go on.",
      );
    case "time_limit":
      return timedOut("time_limit", "limit", "The turn reached the server's time limit and was ended.");
    case "inactivity":
      return timedOut(
        "inactivity",
        "connection",
        "Claude Code sent nothing within the inactivity limit and the turn was ended.",
      );
    case "init_timeout":
      return timedOut(
        "init_timeout",
        "configuration",
        "Claude Code did not start in time (sessionInitTimeoutMs): hooks for SessionStart and MCP servers count.",
      );
  }
}

function heldBack(errorSubtype: string, message: string): Ending {
  return { outcome: "interrupted", errorSubtype, category: "limit", message };
}

function timedOut(errorSubtype: string, category: NonNullable<Ending["category"]>, message: string): Ending {
  return { outcome: "failed", errorSubtype, category, code: "TIMEOUT", message };
}

/** Exit of a process, with its reason. */
export interface Death {
  readonly code: number | null;
  readonly signal: string | null;
  readonly error: string | undefined;
  readonly subtype: string | undefined;
}

function exitText({ code, signal }: Death): string {
  if (signal !== null) return `was killed by ${signal}`;
  return code === null ? "ended" : `exited with code ${String(code)}`;
}

/** Returns the ending after an exit that was not requested: the process did not start, or was lost during its work. */
export function diedEnding(phase: SessionState["process"]["phase"], { lastToolUseId }: Turn, death: Death): Ending {
  if (death.subtype === "lost" && death.error !== undefined)
    return { outcome: "lost", errorSubtype: "lost", message: death.error };
  if (phase === "starting" && death.subtype !== undefined && death.error !== undefined)
    return { outcome: "failed", errorSubtype: death.subtype, category: "configuration", message: death.error };
  const how = exitText(death);
  const why = death.error === undefined ? "" : ` ${death.error.replace(/[.\s]*$/, ".")}`;
  if (phase === "starting") {
    const isUnborn = death.code === null && death.signal === null && why !== "";
    const message = `Claude Code did not start:${isUnborn ? why : ` it ${how}.${why}`}`;
    return { outcome: "failed", errorSubtype: "start_failed", category: "configuration", message };
  }
  const last = lastToolUseId ? ` The last tool call seen is ${lastToolUseId}; its outcome may be unknown.` : "";
  const sentence = why.replace(/^ [a-z]/, (start) => start.toUpperCase());
  const message = `Claude Code ${how} in the middle of the turn.${sentence}${last} Reply to the session to go on.`;
  return { outcome: "lost", errorSubtype: "lost", message };
}
