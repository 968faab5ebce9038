import { once } from "node:events";
import { realpath, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { basename } from "node:path";
import { findAllLeftovers } from "../claude/supervise/leftover-processes.ts";
import { isRunning } from "../claude/supervise/tree.ts";
import { addressOf } from "../config/http.ts";
import { userFilePath } from "../config/state-folder.ts";
import { daemonsOnFile } from "../daemon/running-file.ts";
import { socketFolderFault, socketFolders } from "../daemon/socket-folders.ts";
import { daemonOf, readEndedShims, listShimSockets } from "../daemon/shim-sockets.ts";
import { isDead, listSockets, removeDeadSockets } from "../daemon/socket.ts";
import { describeDaemons, unreachableDaemons, type RunningDaemon, type UnreachableDaemon } from "../daemon/status.ts";
import { counted, FIX_COMMAND, quoted, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** Checks running processes: daemons, remains of dead servers, and the port of `--http`. */

export async function checkDaemons({ environment, stateFolder }: Machine): Promise<Finding[]> {
  // Looking for sockets must not create the folder.
  if (!(await isFolder(stateFolder))) return [{ id: "daemons", level: "ok", text: "No daemon runs." }];
  const looked = await findSockets(stateFolder).catch(toError);
  if (looked instanceof Error) {
    const text = `Daemons cannot be used: ${looked.message}`;
    return [{ id: "daemons", level: "warning", text, fix: `ls -ld ${quoted(stateFolder)} /tmp` }];
  }
  const { folders, sockets } = looked;
  const isStale = await Promise.all(sockets.map(async ({ path }) => isDead(path)));
  const stale = sockets.filter((_, at) => isStale[at]);
  const daemons = await describeDaemons(sockets.filter((_, at) => isStale[at] !== true));
  const others = unreachableDaemons(daemons, await daemonsOnFile(stateFolder, isRunning));
  const found: Finding[] = [
    { id: "daemons", level: "ok", text: describeRunning(daemons.running, others) },
    ...(await findOutdatedSettings(userFilePath(environment), daemons.running)),
    ...others.flatMap(unreachableFindings),
  ];
  if (stale.length === 0) return found;
  const mend = async () => {
    await removeDeadSockets(folders);
    return `${counted(stale.length, "stale socket")} removed.`;
  };
  const left = `Sockets of daemons that have died: ${stale.map(({ path }) => path).join(", ")}.`;
  return [...found, { id: "stale-sockets", level: "warning", text: left, fix: FIX_COMMAND, mend }];
}

/**
 * Finds daemons with outdated settings: daemons read the user's file at their start, from the environment of the starting
 * client.
 */
async function findOutdatedSettings(own: string, running: readonly RunningDaemon[]): Promise<Finding[]> {
  const fix = (name: string) => `claude-agents-mcp daemon stop ${quoted(name)}`;
  const all = running.map(async ({ name, startedAt, userFile: path = own }): Promise<Finding[]> => {
    if (path !== own) {
      const why = `The daemon ${name} reads the user's file ${path}, and not ${own}: it was started with another HOME or XDG_CONFIG_HOME.`;
      const text = `${why} Settings in ${own} have no effect there. The next daemon reads the file of the client that starts it.`;
      return [{ id: "daemons", level: "warning", text, fix: fix(name) }];
    }
    const { mtimeMs = 0 } = (await stat(path).catch(() => undefined)) ?? {};
    if (!(Date.parse(startedAt) < mtimeMs)) return [];
    const text = `${path} was changed after the start of the daemon ${name}, which read it at its start. Stop the daemon: the next client starts another one.`;
    return [{ id: "daemons", level: "warning", text, fix: fix(name) }];
  });
  return (await Promise.all(all)).flat();
}

function describeRunning(running: readonly RunningDaemon[], others: readonly UnreachableDaemon[]): string {
  if (running.length === 0) return others.length === 0 ? "No daemon runs." : "No daemon runs that can be asked.";
  const each = running.map(({ name, pid, proxies, sessions, version }) => {
    const work = `${counted(proxies, "client")}, ${counted(sessions, "session")} at work`;
    return `${name} (version ${version}, pid ${String(pid)}, ${work})`;
  });
  return `${counted(running.length, "daemon")} running: ${each.join("; ")}.`;
}

function unreachableFindings({ name, pid, why }: UnreachableDaemon): Finding[] {
  const stop = `claude-agents-mcp daemon stop ${quoted(name)}`;
  if (pid === undefined) {
    const text = `The daemon ${name} does not answer, and its pid is not recorded: it is "server" in the lines of its log. End it with kill -9.`;
    return [{ id: "daemons", level: "warning", text, fix: `claude-agents-mcp daemon logs ${quoted(name)}` }];
  }
  const kill = `kill -9 ${String(pid)}`;
  const text =
    why === "has no socket"
      ? `The daemon ${name} (pid ${String(pid)}) has no socket: it is about to end, or another one has its name. It serves only its present clients.`
      : `The daemon ${name} (pid ${String(pid)}) does not answer: it was stopped, or hangs. If it does not end by the command below, ${kill} ends it.`;
  return [{ id: "daemons", level: why === "has no socket" ? "ok" : "warning", text, fix: stop }];
}

/** Resolves to true if something listens under `name`. */
export async function hasDaemon(stateFolder: string, name: string): Promise<boolean> {
  if (!(await isFolder(stateFolder))) return false;
  const looked = await findSockets(stateFolder).catch(toError);
  if (looked instanceof Error) return false;
  const own = looked.sockets.filter((socket) => socket.name === name);
  return (await Promise.all(own.map(async ({ path }) => isDead(path)))).includes(false);
}

async function findSockets(stateFolder: string) {
  const folders = await socketFolders(stateFolder);
  const fault = await socketFolderFault(folders);
  if (fault !== undefined) throw new Error(fault);
  return { folders, sockets: await listSockets(folders) };
}

/** Problems of the state folder are reported by `checkStateFolder`. */
function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** Finds shims without a daemon. They wait for the next daemon of their name. */
export async function checkShims({ stateFolder }: Machine): Promise<Finding[]> {
  const looked = (await isFolder(stateFolder)) ? await findSockets(stateFolder).catch(toError) : undefined;
  // Problems of the socket folders are reported by `checkDaemons`.
  if (!looked || looked instanceof Error) return [{ id: "shims", level: "ok", text: "No shim runs." }];
  const givenUp = await describeGivenUp(looked.folders);
  const living = async (paths: readonly string[]) => {
    const isGone = await Promise.all(paths.map(isDead));
    return paths.filter((_, at) => isGone[at] === false);
  };
  const shims = await living(await listShimSockets(looked.folders));
  if (shims.length === 0) return [{ id: "shims", level: "ok", text: `No shim runs.${givenUp}` }];
  const daemons = new Set(await living(looked.sockets.map(({ path }) => path)));
  const names = new Set(looked.sockets.filter(({ path }) => daemons.has(path)).map(({ name }) => name));
  const alone = shims.filter((path) => !names.has(daemonOf(path))).map((path) => basename(path));
  const text = `${counted(shims.length, "shim")} running.${givenUp}`;
  if (alone.length === 0) return [{ id: "shims", level: "ok", text }];
  const why = `Their daemons are gone: ${alone.join(", ")}. They end their Claude Code processes after 5 minutes, unless the daemon comes back.`;
  return [{ id: "shims", level: "warning", text: `${text} ${why}`, fix: "claude-agents-mcp daemon status" }];
}

/** Describes processes ended by shims. Recovered sessions report this, too. */
async function describeGivenUp(folders: readonly string[]): Promise<string> {
  const each = (await readEndedShims(folders)).flatMap(({ daemon, processes }) => {
    const [last] = processes.slice(-1);
    const ended = `${counted(processes.length, "Claude Code process")} of ${daemon}`;
    return last === undefined ? [] : [` A shim has ended ${ended} at ${last.at}: ${last.why}`];
  });
  return each.join("");
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

export async function checkLeftovers({ store }: Machine): Promise<Finding[]> {
  const name = store === undefined ? undefined : await realpath(store).catch(() => store);
  const left = name === undefined ? [] : await findAllLeftovers(name);
  if (left.length === 0) {
    return [{ id: "leftover-processes", level: "ok", text: "No process of a dead server is left." }];
  }
  const pids = left.map(({ pid }) => String(pid));
  const text = `${counted(pids.length, "process")} of dead servers of this store: ${pids.join(", ")}. The next server ends them.`;
  return [{ id: "leftover-processes", level: "warning", text, fix: `kill -KILL ${pids.join(" ")}` }];
}

const PROBE_MS = 2_000;

/** Checks the port of `--http`. Another server of ours on the port is not a fault. */
export async function checkPort({ config: { http } }: Machine): Promise<Finding[]> {
  if (http === undefined) return [];
  const { host, port } = addressOf(http);
  const address = `${host}:${String(port)}`;
  const problem = await listenProblem(host.replace(/^\[|\]$/g, ""), port);
  if (problem === undefined) return [{ id: "port", level: "ok", text: `${address} is free for --http.` }];
  if (await isOurServer(address)) {
    return [{ id: "port", level: "ok", text: `A server of claude-agents-mcp listens at ${address} already.` }];
  }
  const text = `--http ${address} cannot be used: ${problem}.`;
  return [{ id: "port", level: "error", text, fix: `claude-agents-mcp --http ${host}:0` }];
}

async function listenProblem(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, "listening");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    server.close();
  }
}

/** Recognizes our servers by the fields of `/healthz`. */
async function isOurServer(address: string): Promise<boolean> {
  const url = `http://${address.replace(/^(?:0\.0\.0\.0|\[::\]):/, "127.0.0.1:")}/healthz`;
  try {
    const body: unknown = await (await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) })).json();
    return typeof body === "object" && body !== null && "status" in body && "uptimeSeconds" in body;
  } catch {
    return false;
  }
}
