import { findProgram, probeProgram } from "../../security/find-program.ts";
import type { Logger } from "../../engine/ports.ts";

/**
 * Runs each Claude Code in a pid namespace. After the end of the first process, for any reason, the kernel ends all processes
 * in the namespace. Opt-in, because commands inside see and signal nothing outside.
 */

/** Mounts a new `/proc`. Propagation stays unchanged, so that commands share mounts with the system as before. */
const UNSHARE = ["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "unchanged", "--"];
/** The first process of a namespace has to reap orphans. */
const INIT = ["/bin/sh", "-c", '"$@"; exit $?', "init"];
/** `bwrap` reaps orphans itself. Setuid programs gain no rights inside, and without root `bwrap` adds a user namespace. */
const BWRAP = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--unshare-pid"];
const BWRAP_ENDS = ["--die-with-parent", "--"];

/**
 * Returns the words before a command that run the command in a new pid namespace. Throws with every refusal if no way works.
 */
export async function findPidNamespace(): Promise<readonly string[]> {
  if (process.platform !== "linux") throw new Error("Only Linux has pid namespaces.");
  const ways = [
    ...(process.getuid?.() === 0 ? [["unshare", ...UNSHARE, ...INIT]] : []),
    ["bwrap", ...BWRAP, ...BWRAP_ENDS],
  ];
  const refusals: string[] = [];
  for (const [name = "", ...args] of ways) {
    const program = await findProgram(name, process.env);
    const refusal =
      program === undefined ? "is not installed" : await probeProgram(program, [...args, "true"], process.env);
    if (program !== undefined && refusal === undefined) return [program, ...args];
    refusals.push(`${name}: ${refusal ?? ""}`);
  }
  throw new Error(refusals.join("; "));
}

/** Method of finding descendants of a Claude Code process at its end, best first. */
export type TrackingMethod = "pid namespace" | "variable and number" | "variable" | "tree";

/** Ways of a command to leave a process behind. */
const DETACHING_COMMANDS = [
  "cmd &",
  "nohup",
  "setsid",
  "double fork",
  "env -i setsid",
  "env -u CLAUDE_CODE_MCP_PROCESS setsid",
  "setsid with a trap on TERM",
] as const;

/** `DETACHING_COMMANDS` that outlive session and server. Processes started by another service (systemd, cron, docker) always do. */
const SURVIVES: Readonly<Record<TrackingMethod, readonly (typeof DETACHING_COMMANDS)[number][]>> = {
  "pid namespace": [],
  "variable and number": [],
  variable: ["env -i setsid", "env -u CLAUDE_CODE_MCP_PROCESS setsid"],
  tree: DETACHING_COMMANDS,
};

/** Logs the method in force. Call once. */
export function logTrackingMethod(method: TrackingMethod, log: Pick<Logger, "info">): void {
  log.info("processes of sessions end with them", { foundBy: method, survives: [...SURVIVES[method]] });
}

/**
 * Prefixes a command with the operator's `wrapper`, for example a program that changes the user, the namespace or the machine
 * and runs its arguments.
 */
export function wrapCommand(
  wrapper: readonly string[],
  command: string,
  args: readonly string[],
): [command: string, args: string[]] {
  const [first, ...others] = wrapper;
  return first === undefined ? [command, [...args]] : [first, [...others, command, ...args]];
}
