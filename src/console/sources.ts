import type { Engine } from "../engine/api.ts";
import type { SessionBackend } from "../engine/ports.ts";
import type { createUsageReport } from "../usage/days.ts";
import type { SubagentTasks } from "./subagent-tasks.ts";
import type { Titles } from "./titles.ts";

/** Data sources of the console: `engine` for sessions of a principal, `store` for logs by event type and for the ledger. */
export interface Sources {
  readonly engine: Engine;
  readonly store: Pick<SessionBackend, "ledger" | "log" | "machines">;
  readonly titles: Titles;
  readonly agents: SubagentTasks;
  readonly usage: ReturnType<typeof createUsageReport>;
}
