import { findProgram, refusalOf } from "../../security/programs.ts";

/**
 * A pid namespace for each Claude Code: when its first process ends, however that comes about, the kernel ends all others
 * in it. Commands in it see and signal nothing outside, which is why nobody gets it who has not asked for it.
 */

/** Its own /proc, and no word about mounts: those that commands make, or see come and go, are as they were. */
const UNSHARE = ["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation", "unchanged", "--"];
/** The first process of a namespace has to wait for the orphans in it. */
const INIT = ["/bin/sh", "-c", '"$@"; exit $?', "init"];
/** Waits for orphans itself. Setuid programs gain nothing in it, and whoever is not root has a user namespace as well. */
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
    const program = findProgram(name, process.env);
    const refusal =
      program === undefined ? "is not installed" : await refusalOf(program, [...args, "true"], process.env);
    if (program !== undefined && refusal === undefined) return [program, ...args];
    refusals.push(`${name}: ${refusal ?? ""}`);
  }
  throw new Error(refusals.join("; "));
}
