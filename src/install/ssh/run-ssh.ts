import { spawn, type ChildProcess } from "node:child_process";
import { text } from "node:stream/consumers";
import { PRODUCT } from "../../domain/names.ts";
import { findProgram } from "../../security/find-program.ts";
import { stripControlChars } from "../../security/control-chars.ts";

/** Runs OpenSSH's client and says why it failed. */

/** A host cannot be used. The message says why, and what to do; words of the host in it cannot control a terminal. */
export class HostProblem extends Error {
  override readonly name = "HostProblem";

  constructor(message: string) {
    super(stripControlChars(message));
  }
}

/** Finds OpenSSH's client. Throws HostProblem. */
export async function findSsh(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const name = process.platform === "win32" ? "ssh.exe" : "ssh";
  const found = await findProgram(name, env);
  if (found !== undefined) return found;
  const packages = "Debian: apt-get install openssh-client; Windows: the optional feature OpenSSH Client";
  throw new HostProblem(`There is no ${name} in PATH. Install OpenSSH's client (${packages}).`);
}

export interface SshOutput {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** True if the time limit has ended the call. */
  readonly isLate: boolean;
}

interface SshInput {
  readonly input?: string;
  readonly ms: number;
}

/** Runs `ssh` to its end. */
export async function runSsh(ssh: string, args: readonly string[], { input = "", ms }: SshInput): Promise<SshOutput> {
  const child = spawn(ssh, args, { stdio: "pipe", windowsHide: true });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, ms);
  // Ends early if nothing there reads it.
  child.stdin.on("error", () => undefined).end(input);
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  try {
    const code = await exitOf(child);
    return { code, stdout: await stdout, stderr: await stderr, isLate };
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves to the exit code once the output has ended; rejects if the program cannot be started. */
export async function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
}

/** Exit code of `ssh` for failures of its own. */
const OWN_FAILURE = 255;

/** Returns the problem of a call that has not reached the shell there; `undefined` if the call has, or may have. */
export function connectionProblem(target: string, output: Omit<SshOutput, "stdout">): string | undefined {
  const { code, isLate, stderr } = output;
  const known = KNOWN.find(({ says }) => says.test(stderr));
  if (code === OWN_FAILURE && known) return known.problem(target);
  if (isLate) return `${target} did not answer in time. Try \`ssh ${target}\` in a terminal.`;
  if (code !== OWN_FAILURE) return undefined;
  return `ssh failed: ${errorLine(stderr) || "without a message"}. Try \`ssh ${target}\` in a terminal.`;
}

/** Failures that a person can mend, by the words of OpenSSH. */
const KNOWN: readonly { readonly says: RegExp; readonly problem: (target: string) => string }[] = [
  {
    says: /REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed/i,
    problem: (target) =>
      `the key of ${target} has changed since the last connection. Find out why before you trust the new one: someone may be in between.`,
  },
  {
    says: /Host key verification failed|No .* host key is known/i,
    problem: (target) =>
      `the key of ${target} is not known here. Run \`ssh ${target}\` once, compare the fingerprint, and run this again.`,
  },
  {
    says: /Permission denied|Too many authentication failures/i,
    problem: (target) =>
      `${target} accepts no key of yours without a question, and clients cannot answer one. Run \`ssh-copy-id ${target}\`, or \`ssh-add\` for a key with a passphrase. \`ssh -o BatchMode=yes ${target} true\` must succeed.`,
  },
  {
    says: /Could not resolve hostname/i,
    problem: (target) => `no machine is known as ${target}. Check the name, or add a Host to ~/.ssh/config.`,
  },
  {
    says: /Connection refused|timed out|No route to host|Network is unreachable|Connection closed/i,
    problem: (target) => `${target} cannot be reached. Check that it runs, and its network.`,
  },
];

/** Returns the line that names the error, else the last line, safe to print. */
export function errorLine(output: string): string {
  const lines = output.split("\n").flatMap((line) => stripControlChars(line).trim() || []);
  const named = lines.find((line) => line.startsWith(PRODUCT) || /Error\b/.test(line));
  return (named ?? lines.at(-1) ?? "").slice(0, 300);
}

/** Problem of a login shell, or of a program in between, that writes to stdout. */
export function noiseProblem(target: string, noise: string): string {
  return `something writes to stdout there before the server: "${errorLine(noise).slice(0, 80)}". That breaks JSON-RPC. Find it in the files that the login shell of ${target} reads (such as ~/.bashrc, ~/.zshenv), and let it write only in a terminal: [ -t 1 ] && echo ...`;
}
