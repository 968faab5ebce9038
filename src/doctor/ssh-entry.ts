import type { Aim } from "../install/change.ts";
import { shellWord, SSH_OPTIONS, type SshCall } from "../install/ssh/host.ts";
import { connectionProblem, findSsh, HostProblem, errorLine, noiseProblem, runSsh } from "../install/ssh/run-ssh.ts";
import { quoted, type Finding } from "./finding.ts";

/** Tries entries of servers on other machines: each tells its version. */

interface SshEntry {
  readonly aim: Aim;
  readonly file: string;
  readonly call: SshCall;
}

/** Below the limit of the check. */
const VERSION_MS = 10_000;

export async function sshFindings(entry: SshEntry, environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  const { aim, call, file } = entry;
  const { title } = aim.client;
  const subject = `${title} reaches ${aim.host ?? "this server"} by ssh on ${call.target}`;
  // The file of a project may come from others, and `ssh` runs commands that its flags name.
  if (aim.scope === "project") return [fine(`${subject}: not tried, because ${file} belongs to the project.`)];
  if (call.words.length === 0) return [fine(`${subject}: not tried, because its entry in ${file} has no command.`)];
  const tried = await askVersion(call, environment);
  if ("version" in tried) return [fine(`${subject}: version ${tried.version} there.`)];
  const text = `${title} cannot use the server on ${call.target}, by its entry in ${file}: ${tried.problem}`;
  return [{ id: "clients", level: "warning", text, ...(tried.isReached && installCommand(entry)) }];
}

function fine(text: string): Finding {
  return { id: "clients", level: "ok", text };
}

type Tried = { readonly version: string } | { readonly problem: string; readonly isReached: boolean };

async function askVersion({ before, target, words }: SshCall, environment: NodeJS.ProcessEnv): Promise<Tried> {
  try {
    const ssh = await findSsh(environment);
    // The first value of an option counts.
    const args = [...SSH_OPTIONS, ...before, target, ...[...words, "--version"].map(shellWord)];
    const output = await runSsh(ssh, args, { ms: VERSION_MS });
    const problem = connectionProblem(target, output);
    if (problem !== undefined) return { problem, isReached: false };
    const lines = output.stdout.trim().split("\n");
    if (output.code !== 0) return { problem: `it does not start: ${errorLine(output.stderr)}`, isReached: true };
    return lines.length === 1
      ? { version: lines[0] ?? "" }
      : { problem: noiseProblem(target, lines[0] ?? ""), isReached: false };
  } catch (error) {
    if (error instanceof HostProblem) return { problem: error.message, isReached: false };
    throw error;
  }
}

/** Returns the command that finds the server again; keeps the flags, because sessions are restricted by them. */
function installCommand({ aim: { client, host }, call: { target, words } }: SshEntry): Pick<Finding, "fix"> {
  if (host === undefined) return {};
  const at = words.findIndex((word) => word.startsWith("-"));
  const flags = at === -1 ? "" : ` -- ${words.slice(at).map(quoted).join(" ")}`;
  return { fix: `claude-agents-mcp install --host ${quoted(`${host}=ssh:${target}`)} ${client.id}${flags}` };
}
