import { findProgram, refusalOf } from "../../security/programs.ts";
import type { Logger } from "../../engine/ports.ts";

/**
 * A pid namespace for each Claude Code: when its first process ends, however that comes about, the kernel ends all others
 * in it. Commands in it see and signal nothing outside, which is why it is opt-in.
 */

/** Its own /proc, and no word about mounts: those that commands make, or see come and go, are as they were. */
const UNSHARE = ["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "unchanged", "--"];
/** The first process of a namespace has to wait for the orphans in it. */
const INIT = ["/bin/sh", "-c", '"$@"; exit $?', "init"];
/** Waits for orphans itself. Setuid programs gain nothing in it, and without root it adds a user namespace. */
const BWRAP = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--unshare-pid"];
const BWRAP_ENDS = ["--die-with-parent", "--"];

/** What to put before a command, so that it runs in a pid namespace of its own. Throws with what each way said where none works. */
export async function pidNamespace(): Promise<readonly string[]> {
  if (process.platform !== "linux") throw new Error("Only Linux has pid namespaces.");
  const ways = [
    ...(process.getuid?.() === 0 ? [["unshare", ...UNSHARE, ...INIT]] : []),
    ["bwrap", ...BWRAP, ...BWRAP_ENDS],
  ];
  const refusals: string[] = [];
  for (const [name = "", ...args] of ways) {
    const program = await findProgram(name, process.env);
    const refusal =
      program === undefined ? "is not installed" : await refusalOf(program, [...args, "true"], process.env);
    if (program !== undefined && refusal === undefined) return [program, ...args];
    refusals.push(`${name}: ${refusal ?? ""}`);
  }
  throw new Error(refusals.join("; "));
}

/** How descendants of a Claude Code process are found when it ends, best first. */
export type TrackingMethod = "pid namespace" | "variable and number" | "variable" | "tree";

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

/** Which of them outlive their session and server; what another service starts for them (systemd, cron, docker) always does. */
const SURVIVES: Readonly<Record<TrackingMethod, readonly (typeof KINDS)[number][]>> = {
  "pid namespace": [],
  "variable and number": [],
  variable: ["env -i setsid", "env -u CLAUDE_CODE_MCP_PROCESS setsid"],
  tree: KINDS,
};

/** Logs once which method is in force. */
export function logTrackingMethod(method: TrackingMethod, log: Pick<Logger, "info">): void {
  log.info("processes of sessions end with them", { foundBy: method, survives: [...SURVIVES[method]] });
}

/**
 * A command as the operator has it started: behind words of their own that take it for their arguments, such as those that
 * change the user, the namespace or the machine.
 */
export function wrapCommand(
  wrapper: readonly string[],
  command: string,
  args: readonly string[],
): [command: string, args: string[]] {
  const [first, ...others] = wrapper;
  return first === undefined ? [command, [...args]] : [first, [...others, command, ...args]];
}
