import { findProgram, isExecutable, probeProgram } from "./find-program.ts";

/** Checks that this machine can confine processes: needs of Claude Code's sandbox, and of a pid namespace of our own. */

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the obstacle to Claude Code's sandbox and the remedy; `undefined` if the sandbox works. Does not look for ripgrep,
 * which is part of Claude Code.
 */
export async function sandboxProblem(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Promise<string | undefined> {
  if (platform === "linux") return linuxProblem(environment);
  if (platform === "darwin") return macProblem();
  return "Claude Code has a sandbox on Linux (WSL 2 included) and macOS only. Run the server there.";
}

async function linuxProblem(environment: Environment): Promise<string | undefined> {
  const missing: (readonly [string, string])[] = [];
  for (const needed of NEEDED_ON_LINUX) {
    if ((await findProgram(needed[0], environment)) === undefined) missing.push(needed);
  }
  if (missing.length > 0) {
    const programs = missing.map(([program]) => program).join(" and ");
    const packages = missing.map(([, name]) => name).join(" ");
    return `${programs} cannot be found in PATH. Install what is missing (Debian and Ubuntu: apt-get install ${packages}).`;
  }
  const refusal = await namespaceRefusal(environment);
  if (refusal === undefined) return undefined;
  const advice =
    "Allow unprivileged user namespaces (sysctl user.max_user_namespaces; on Ubuntu an AppArmor profile for bwrap), or give the container the right to make them.";
  return `bwrap cannot make namespaces here (${refusal}). ${advice}`;
}

/** Debian package of each program. */
const NEEDED_ON_LINUX = new Map([
  ["bwrap", "bubblewrap"],
  ["socat", "socat"],
]);

const SEATBELT = "/usr/bin/sandbox-exec";

async function macProblem(): Promise<string | undefined> {
  return (await isExecutable(SEATBELT)) ? undefined : `${SEATBELT}, a part of macOS, is missing. Repair the system.`;
}

/** Returns the error of bwrap when making a mount, pid and network namespace with its own /proc; `undefined` on success. */
export async function namespaceRefusal(environment: Environment): Promise<string | undefined> {
  const bwrap = await findProgram("bwrap", environment);
  if (bwrap === undefined) return "bwrap is not installed";
  const mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
  const args = ["--new-session", "--die-with-parent", "--unshare-pid", "--unshare-net", ...mounts, "--", "true"];
  return probeProgram(bwrap, args, environment);
}
