import type { Budget } from "../domain/budget.ts";
import type { AccountWindows, PlanReserve } from "../domain/plan.ts";

/** Figures of use exchanged between the console's page and its server: usage by days, plan windows, budgets. */

/** GET /usage?since=ms&zone=Europe/Berlin: usage after `since`, by days of `zone`. */
export interface Usage {
  readonly since: number;
  readonly totals: Amounts;
  /** Oldest first; days without usage are left out. */
  readonly days: readonly (Amounts & {
    /** 2026-01-31 */
    readonly day: string;
    readonly costByModel: Readonly<Record<string, number>>;
  })[];
  /** Most expensive first. */
  readonly models: readonly { readonly model: string; readonly costUsd: number }[];
  readonly directories: readonly (Amounts & { readonly cwd: string; readonly sessions: number })[];
}

export interface Amounts {
  readonly turns: number;
  readonly failed: number;
  readonly costUsd: number;
  readonly tokens: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheCreation: number;
  };
  /** Duration of ended turns, ms; `workedMs` excludes time with an open request. */
  readonly durationMs: number;
  readonly workedMs: number;
  /** Time with an open request, ms; running turns included. */
  readonly waitedMs: number;
}

/** GET /plan: accounts and budgets that concern the principal; all of them for the operator. */
export interface PlanUse {
  readonly accounts: readonly AccountUse[];
  /** Budgets of the present day, by the server's time zone. */
  readonly budgets: readonly BudgetUse[];
}

/** Account that pays for sessions. `id` reveals no credential. */
export interface AccountUse extends Pick<AccountWindows, "configFolder" | "paidBy" | "windows"> {
  readonly id: string;
  /** False for API keys and cloud providers. */
  readonly hasWindows: boolean;
  /** Rest of the windows that is kept for people; missing if none is kept, as far as known here. */
  readonly reserve?: PlanReserve;
}

/** GET /nodes: servers of a store that several machines share; none for a store of one machine, and for users without rights. */
export interface NodeList {
  readonly nodes: readonly ShownNode[];
}

export interface ShownNode {
  readonly nodeId: string;
  readonly name: string;
  readonly state: "alive" | "draining" | "dead";
  readonly version: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly sharedFolders: readonly string[];
  /** Sessions that the node owns. */
  readonly sessions: number;
  /** Maximum number of Claude Code processes. */
  readonly maxLive: number;
  readonly seenAt: number;
}

/** Spending of a budget on a day, USD, as estimated by Claude Code. */
export interface BudgetUse extends Pick<Budget, "name" | "scope"> {
  /** Bound of the day; missing if no session tells it. */
  readonly usdPerDay?: number;
  readonly spentUsd: number;
  readonly reservedUsd: number;
  /** Part of `spentUsd` of models without a known price. */
  readonly unknownUsd: number;
}
