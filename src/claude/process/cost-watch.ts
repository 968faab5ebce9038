import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { exactUsd } from "../../domain/usage.ts";
import type { AgentSignal } from "../../engine/ports.ts";
import { settlesWithin } from "./control.ts";
import type { LaunchPlan } from "./launch.ts";

/** A prompt does not wait longer for the cost before it, ms. */
const START_MS = 10_000;
/** Nor does the end of a turn, ms. */
const END_MS = 1_000;
/** Claude Code answers within 20 ms. One that has not answered by then is asked again with the next message, ms. */
const ANSWER_MS = 30_000;

/** Reports the cost of a running Claude Code when it may have changed. At most one request is in flight. */
export class CostWatch {
  readonly #onSignal: (signal: AgentSignal) => void;
  readonly #when: LaunchPlan["watchCost"];
  readonly #isAttached: boolean;
  #query: Query | undefined;
  #asking = false;
  #again = false;
  /** Subagents have outlived their turn: no result will say what they cost. */
  #isOutlived = false;
  #onStartKnown: () => void = () => undefined;

  /** Resolves when a prompt may add to the cost: a copy of a session begins with the cost of that session, which is reported first. */
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

  /** Claude Code takes control requests from here on. */
  begin(query: Query): void {
    this.#query = query;
    if (this.#when === "never") return;
    void settlesWithin(START_MS, this.#report(query, !this.#isAttached)).then(this.#onStartKnown);
  }

  /** After what may have cost something. */
  report(): void {
    if (!this.#query || (this.#when !== "always" && !this.#isOutlived)) return;
    if (this.#asking) this.#again = true;
    else void this.#report(this.#query, false);
  }

  /** Called before a signal is reported. What subagents have cost that outlived their turn is reported before its end. */
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
    // One that cannot answer is about to end.
    if (costUsdTotal === undefined) return;
    this.#onSignal({ type: "spent", costUsdTotal, atStart });
    if (!this.#again) return;
    this.#again = false;
    this.report();
  }
}

/** What the session has cost so far, USD, as Claude Code counts it: over resumes too. */
async function costSoFar(query: Query): Promise<number> {
  const { session } = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET({ skipBehaviors: true });
  return exactUsd(session.total_cost_usd);
}
