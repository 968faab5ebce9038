import type { Query } from "@anthropic-ai/claude-agent-sdk";
import type { AgentSignal } from "../../engine/ports.ts";
import { costSoFar } from "./control.ts";

/** Tells what a running Claude Code has spent, whenever somebody thinks that it may have changed. One question at a time. */
export class CostWatch {
  readonly #query: Query;
  readonly #onSignal: (signal: AgentSignal) => void;
  #asking = false;
  #again: { atStart: boolean } | undefined;

  constructor(query: Query, onSignal: (signal: AgentSignal) => void) {
    this.#query = query;
    this.#onSignal = onSignal;
  }

  tell(atStart: boolean): void {
    if (this.#asking) {
      this.#again = { atStart: atStart || this.#again?.atStart === true };
      return;
    }
    this.#asking = true;
    void this.#ask(atStart);
  }

  async #ask(atStart: boolean): Promise<void> {
    const costUsdTotal = await costSoFar(this.#query).catch(() => undefined);
    this.#asking = false;
    // One that cannot answer is about to end.
    if (costUsdTotal === undefined) return;
    this.#onSignal({ type: "spent", costUsdTotal, atStart });
    const again = this.#again;
    this.#again = undefined;
    if (again) this.tell(again.atStart);
  }
}
