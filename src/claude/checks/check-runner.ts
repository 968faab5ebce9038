import type { CheckedSession, CheckRunner, JudgedCommand } from "../../engine/ports.ts";
import { exists } from "../../security/files/limited.ts";
import { findProgram, findProject, isExecutable } from "../../security/find-program.ts";
import { findProtection, SERVER_CODE, STARTED_PROGRAMS } from "../../security/protected-paths.ts";
import {
  allowedPlaces,
  buildEnvironment,
  isSandboxed,
  sessionMasks,
  type ClaudeDependencies,
} from "../dependencies.ts";
import { readSecrets } from "../profile-environment.ts";
import { resolveFolders } from "../launch-plan.ts";
import { BASH_ADVICE, windowsShell, type Machine } from "../preflight/git-bash.ts";
import { checkAllPlaces } from "../preflight/session-paths.ts";
import { findClosedPaths } from "../restrictions.ts";
import { closedText, judgeRequest } from "../risk/judge.ts";
import { findShownPaths } from "../risk/mentioned-paths.ts";
import type { Folders } from "../risk/named-paths.ts";
import type { Spawner } from "../supervise/spawn.ts";
import { Ending, runCommands, type RunContext } from "./run-commands.ts";

interface ClosableRunner extends CheckRunner {
  /** Stops all runs, and all later ones at once. Resolves once their processes are gone. */
  close(): Promise<void>;
}

/** Returns the runner of this server's verifications. */
export function createCheckRunner(config: ClaudeDependencies, spawner: Pick<Spawner, "spawnHere">): ClosableRunner {
  const running = new Map<Ending, Promise<unknown>>();
  let isClosed = false;
  const run: CheckRunner["run"] = async (session, commands, { stop, timeoutMs }) => {
    const ending = new Ending();
    const onStop = () => ending.end("stopped");
    const timer = setTimeout(() => ending.end("timeout"), timeoutMs);
    stop.addEventListener("abort", onStop, { once: true });
    if (isClosed || stop.aborted) onStop();
    const { mask } = sessionMasks(session, config);
    const { processTag } = session;
    const supervision = { spawner, processTag, mask, ending };
    const outcome = runCommands(prepare(session, config), commands, supervision).catch((error: unknown) => ({
      status: "lost" as const,
      commands: [],
      message: mask(error instanceof Error ? error.message : String(error)),
    }));
    running.set(ending, outcome);
    return outcome.finally(() => {
      running.delete(ending);
      clearTimeout(timer);
      stop.removeEventListener("abort", onStop);
    });
  };
  return {
    refusal,
    judge: async (session, commands) => {
      const folders = await resolveFolders(session.options, buildEnvironment(config, session), config);
      return Promise.all(commands.map(async (command) => judgeCommand(command, folders)));
    },
    run,
    close: async () => {
      isClosed = true;
      for (const ending of running.keys()) ending.end("stopped");
      await Promise.all(running.values());
    },
  };
}

function refusal({ options, policy }: CheckedSession): string | undefined {
  if (!isSandboxed(policy) && options.sandbox?.enabled !== true) return undefined;
  const whose = isSandboxed(policy) ? "This server runs sessions in the sandbox" : "The session has a sandbox";
  return `${whose}, which is Claude Code's own: commands of the server would run outside. Leave out verify, and tell Claude Code in the prompt to run them.`;
}

/** Assesses a command as a request for Bash. Refuses what no session may reach, as Claude Code's own rules do. */
async function judgeCommand(command: string, folders: Folders): Promise<JudgedCommand> {
  const ids = { requestId: "", toolUseId: "" };
  const request = { ...ids, kind: "permission" as const, toolName: "Bash", input: { command } };
  const [judged, mentions] = await Promise.all([judgeRequest(request, folders), findShownPaths(command, folders)]);
  // A command may run the programs that no session may change, for instance Node.
  const files = folders.closed.filter(({ why }) => why !== SERVER_CODE && why !== STARTED_PROGRAMS);
  const closed = findProtection(mentions, files, "read");
  return { ...judged, ...(closed && { refused: closedText(closed) }), mentions };
}

/** Checks folder and programs as late as possible, because a link may lead elsewhere by now. */
async function prepare(session: CheckedSession, config: ClaudeDependencies): Promise<RunContext> {
  const refused = refusal(session);
  if (refused !== undefined) throw new Error(refused);
  const { options } = session;
  const { all, own } = allowedPlaces(config, session);
  const secrets = await readSecrets(config, session);
  sessionMasks(session, config, secrets);
  const environment = { ...buildEnvironment(config, session), ...secrets };
  const closed = await findClosedPaths(options, environment, config);
  const { cwd } = await checkAllPlaces({ cwd: options.cwd }, all.length > 0 ? all : [{ allowDirs: [] }], closed);
  const { spawnWrapper: wrapper } = own;
  const [first = ""] = wrapper;
  if (first.startsWith("/") && !(await isExecutable(first)))
    throw new Error(`The spawnWrapper ${first} is not an executable file. Name a program in the server's settings.`);
  return {
    cwd,
    environment,
    wrapper,
    shell: await findShell({ platform: process.platform, environment, exists }, cwd),
  };
}

/** Folders of shells if `PATH` has none outside the project. */
const USUAL_FOLDERS = "/usr/local/bin:/usr/bin:/bin";

/**
 * Returns the shell for commands of a session in `cwd`: bash, as for Claude Code's own commands, or sh. Skips shells in the
 * project, because a repository must not choose the shell. Rejects if there is none.
 */
export async function findShell(machine: Machine, cwd: string): Promise<string> {
  const shell = await windowsShell(machine);
  if (shell.kind === "bash") return shell.path;
  if (shell.kind !== "not windows") throw new Error(`Git Bash was not found, so commands cannot run. ${BASH_ADVICE}`);
  const project = await findProject(cwd);
  for (const name of ["bash", "sh"]) {
    const found =
      (await findProgram(name, machine.environment, project)) ?? (await findProgram(name, { PATH: USUAL_FOLDERS }));
    if (found !== undefined) return found;
  }
  throw new Error("Neither bash nor sh was found, so commands cannot run. Install one of them.");
}
