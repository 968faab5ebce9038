import type { Logger } from "../../engine/ports.ts";

/** How what a Claude Code has started is found again when it is to end, best first. */
export type Means = "pid namespace" | "variable and number" | "variable" | "tree";

/** The ways in which a command leaves something behind. */
const KINDS = [
  "cmd &",
  "nohup",
  "setsid",
  "double fork",
  "env -i setsid",
  "env -u CLAUDE_CODE_MCP_PROCESS setsid",
  "setsid with a trap on TERM",
] as const;

/** Which of them outlive their session and server; what somebody else starts at their request (systemd, cron, docker) always does. */
const SURVIVES: Readonly<Record<Means, readonly (typeof KINDS)[number][]>> = {
  "pid namespace": [],
  "variable and number": [],
  variable: ["env -i setsid", "env -u CLAUDE_CODE_MCP_PROCESS setsid"],
  tree: KINDS,
};

/** The operator is told once which is in force. */
export function tellMeans(means: Means, log: Pick<Logger, "info">): void {
  log.info("processes of sessions end with them", { foundBy: means, survives: [...SURVIVES[means]] });
}
