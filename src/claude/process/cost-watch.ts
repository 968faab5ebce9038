import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { roundUsd } from "../../domain/usage.ts";
import type { AgentSignal } from "../../engine/ports.ts";
import { settlesWithin } from "./control.ts";
import type { LaunchPlan } from "./launch.ts";

/** Longest wait of a prompt for the starting cost, ms. */
const START_MS = 10_000;
/** Longest wait of a turn's end for the cost of subagents, ms. */
const END_MS = 1_000;
/** Time limit for an answer, normally 20 ms. Afterwards the next message triggers a new request, ms. */
const ANSWER_MS = 30_000;

/** Reports the cost of a running Claude Code after possible changes. At most one request is in flight. */
export class CostWatch {
  readonly #onSignal: (signal: AgentSignal) => void;
  readonly #when: LaunchPlan["watchCost"];
  readonly #isAttached: boolean;
  #query: Query | undefined;
  #asking = false;
  #again = false;
  /** True if subagents have outlived their turn, so that no result will include their cost. */
  #isOutlived = false;
  #onStartKnown: () => void = () => undefined;

  /**
   * Resolves once the starting cost is known. A fork starts with the cost of its original, which must not count for the first
   * prompt.
   */
  readonly startKnown: Promise<void>;

  constructor(
    { attached, watchCost }: Pick<LaunchPlan, "attached" | "watchCost">,
    onSignal: (signal: AgentSignal) => void,
  ) {
    this.#onSignal = onSignal;
    this.#when = watchCost;
    this.#isAttached = attached !== undefined;
    this.startKnown = new Promise((resolve) => (this.#onStartKnown = resolve));
    if (this.#isAttached || watchCost === "never") this.#onStartKnown();
  }

  /** Call once Claude Code takes control requests. */
  begin(query: Query): void {
    this.#query = query;
    if (this.#when === "never") return;
    void settlesWithin(START_MS, this.#report(query, !this.#isAttached)).then(this.#onStartKnown);
  }

  /** Call after anything that may have caused cost. */
  report(): void {
    if (!this.#query || (this.#when !== "always" && !this.#isOutlived)) return;
    if (this.#asking) this.#again = true;
    else void this.#report(this.#query, false);
  }

  /** Call before `signal` is reported. Reports the cost of subagents that outlived an earlier turn before `idle`. */
  async before(signal: AgentSignal): Promise<void> {
    if (signal.type !== "idle") return;
    if (this.#isOutlived && this.#query) await settlesWithin(END_MS, this.#report(this.#query, false));
    this.#isOutlived = signal.agents !== undefined;
  }

  async #report(query: Query, atStart: boolean): Promise<void> {
    this.#asking = true;
    const cost = costSoFar(query).catch(() => undefined);
    const costUsdTotal = (await settlesWithin(ANSWER_MS, cost)) ? await cost : undefined;
    this.#asking = false;
    // A process without an answer is about to end.
    if (costUsdTotal === undefined) return;
    this.#onSignal({ type: "spent", costUsdTotal, atStart });
    if (!this.#again) return;
    this.#again = false;
    this.report();
  }
}

/** Cost of the session so far, USD, as counted by Claude Code across resumes. */
async function costSoFar(query: Query): Promise<number> {
  const { session } = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET({ skipBehaviors: true });
  return roundUsd(session.total_cost_usd);
}
