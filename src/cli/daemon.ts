import { setTimeout as sleep } from "node:timers/promises";
import { hasTerminal, isConfirmed } from "./confirm.ts";
import { logs } from "./daemon/logs.ts";
import { parseOwnFlags } from "./own-flags.ts";
import { nestingDepth } from "./preflight.ts";
import { withStoreIfAny, type Store } from "./sessions/store.ts";
import { hasDriver, isKnownStart, isRunning } from "../app/store.ts";
import { ConfigError } from "../config/error.ts";
import { didYouMean } from "../domain/suggest.ts";
import { stateFolder } from "../config/state-folder.ts";
import { daemonsOnFile, type DaemonOnFile } from "../daemon/running-file.ts";
import { socketFolders } from "../daemon/socket-folders.ts";
import { readEndedShims, type EndedDaemonShim } from "../daemon/shim-sockets.ts";
import { listSockets } from "../daemon/socket.ts";
import {
  describeDaemons,
  stopDaemon,
  unreachableDaemons,
  type RunningDaemon,
  type UnreachableDaemon,
} from "../daemon/status.ts";
import { escapeControlChars } from "../security/control-chars.ts";

/** `claude-agents-mcp daemon VERB`: manages servers for many clients. */

/** Resolves to the exit code; to `undefined` if the command goes on by itself. Throws ConfigError. */
export async function daemon(argv: string[]): Promise<number | undefined> {
  // Flags without a verb belong to `status`.
  const [verb = "status", ...rest] = argv[0]?.startsWith("-") === true ? ["status", ...argv] : argv;
  switch (verb) {
    case "run": {
      const { run } = await import("./daemon/run.ts");
      await run(rest);
      return undefined;
    }
    case "status":
      return status(parseOwnFlags("daemon status", rest, { options: { json: BOOLEAN } }));
    case "stop":
      return stop(
        parseOwnFlags("daemon stop", rest, { options: { all: BOOLEAN, json: BOOLEAN, yes: BOOLEAN }, words: "names" }),
      );
    case "logs":
      return logs(
        parseOwnFlags("daemon logs", rest, { options: { follow: { ...BOOLEAN, short: "f" } }, words: "a name" }),
      );
    default:
      throw new ConfigError(
        `daemon: unknown verb "${verb}".${didYouMean(verb, VERBS, ALIASES)} It takes run, status, stop and logs.`,
      );
  }
}

const VERBS = ["run", "status", "stop", "logs"];
/** Words that people type for a verb. */
const ALIASES = {
  start: "run",
  list: "status",
  ls: "status",
  ps: "status",
  restart: "stop",
  kill: "stop",
  log: "logs",
};
const BOOLEAN = { type: "boolean" } as const;

/** Resolves to exit code 1 if there is no daemon. */
async function status({ values: { json } }: { values: { json?: boolean | undefined } }): Promise<number> {
  const { folders, running: daemons, unreachable: others } = await findDaemons();
  const shimsGivenUp = await readEndedShims(folders);
  const none = daemons.length + others.length === 0;
  const running = none ? "No daemon runs.\n" : [...daemons.map(daemonText), ...others.map(unreachableLine)].join("");
  const text = `${running}${shimsGivenUp.map(givenUpLine).join("")}`;
  process.stdout.write(json === true ? `${JSON.stringify({ daemons, unreachable: others, shimsGivenUp })}\n` : text);
  return none ? 1 : 0;
}

function unreachableLine({ name, pid, why }: UnreachableDaemon): string {
  return `${name}  ${why}${pid === undefined ? "" : `, pid ${String(pid)}`}\n`;
}

function daemonText(each: RunningDaemon): string {
  const { log, name, nodeVersion, pid, processes, proxies, sessions, startedAt, state, userFile, version } = each;
  const work = `${count(proxies, "client")}, ${count(sessions, "session")} at work, ${count(processes, "Claude Code process", "es")}`;
  const lines = [
    `${name}  ${state}, ${work}`,
    `  version ${version} on Node ${nodeVersion}, pid ${String(pid)}, since ${startedAt}`,
    ...(userFile === undefined ? [] : [`  settings: ${userFile}`]),
    ...(log === undefined ? [] : [`  log: ${log}`]),
    ...waitLines(each),
    ...shimLines(each),
  ];
  return `${lines.join("\n")}\n`;
}

function waitLines({ turns }: RunningDaemon): string[] {
  const waits = turns.flatMap((turn) => turn.waits ?? []);
  if (waits.length === 0) return [];
  const until = Math.min(...waits.map((each) => each.until ?? Infinity));
  const first = until === Infinity ? "" : `, at the earliest until ${new Date(until).toISOString()}`;
  return [`  waiting at limits: ${count(waits.length, "session")}${first}`];
}

function shimLines({ lastDeath, shim }: RunningDaemon): string[] {
  const { fallback, setting, shims = [] } = shim ?? {};
  const held = shims.reduce((sum, each) => sum + each.processes.length, 0);
  const none = fallback === undefined ? undefined : `  shim: none, so turns end with it (${fallback})`;
  const off = setting === "off" ? "  shim: off, so turns end with it" : undefined;
  const own = `  ${count(shims.length, "shim")} with ${count(held, "Claude Code process", "es")}: ${shims.map(({ pid }) => String(pid)).join(", ")}`;
  const line = none ?? off ?? (shims.length > 0 ? own : undefined);
  const death =
    lastDeath && `  the previous daemon (pid ${String(lastDeath.pid)}) has died: ${escapeControlChars(lastDeath.why)}`;
  return [line, death].filter((each) => each !== undefined);
}

function givenUpLine({ daemon: name, pid, processes }: EndedDaemonShim): string {
  const [last] = processes.slice(-1);
  const why = last === undefined ? "" : ` at ${last.at}: ${escapeControlChars(last.why)}`;
  return `shim ${String(pid)} of ${name} has ended ${count(processes.length, "Claude Code process", "es")}${why}\n`;
}

function count(number: number, noun: string, plural = "s"): string {
  return `${String(number)} ${noun}${number === 1 ? "" : plural}`;
}

interface Stop {
  readonly positionals: readonly string[];
  readonly values: {
    readonly all?: boolean | undefined;
    readonly json?: boolean | undefined;
    readonly yes?: boolean | undefined;
  };
}

/** Drains daemons and waits for their end. Exit code 1 without a daemon, if a daemon does not end, or after a "no". */
async function stop({ positionals: names, values: { all, json, yes } }: Stop): Promise<number> {
  if (nestingDepth() > 0) {
    throw new ConfigError("daemon stop cannot run inside a session of claude-agents-mcp. Run it in your own shell.");
  }
  const { recorded, running, unreachable: others } = await findDaemons();
  const found = [...running, ...others];
  const meant = all === true ? found : chooseDaemons(found, names);
  if (yes !== true && !(await confirmInterrupt(meant))) {
    process.stderr.write("No daemon was stopped.\n");
    return 1;
  }
  const waiting = turnsOf(meant).filter(({ waits }) => waits !== undefined);
  if (waiting.length > 0)
    process.stderr.write(
      `Waiting at limits: ${count(waiting.length, "session")}, for the next daemon to go on with.\n`,
    );
  if (meant.length > 0) process.stderr.write(`Waiting for ${count(meant.length, "daemon")} to end.\n`);
  const hasEnded = await Promise.all(meant.map(async (each) => endDaemon(each, recorded)));
  const stopped = meant.filter((_, at) => hasEnded[at]).map(({ name, pid }) => ({ name, pid }));
  for (const { name, pid } of meant.filter((_, at) => !hasEnded[at])) process.stderr.write(notEnded(name, pid));
  const servers = all === true ? await otherServers() : [];
  const text = stopped.length === 0 ? "No daemon was stopped.\n" : `${count(stopped.length, "daemon")} stopped.\n`;
  const what = meant.length === 0 ? "No daemon runs.\n" : text;
  process.stdout.write(json === true ? `${JSON.stringify({ stopped, servers })}\n` : what + serversLine(servers));
  return stopped.length > 0 && stopped.length === meant.length ? 0 : 1;
}

function notEnded(name: string, pid: number | undefined): string {
  const advice =
    pid === undefined
      ? "Its log has its pid"
      : `If pid ${String(pid)} is still that daemon, end it with kill -9 ${String(pid)}`;
  return `claude-agents-mcp: the daemon "${name}" has not ended. ${advice}.\n`;
}

/** Stops a daemon; resolves to true after its end. An unreachable daemon gets SIGTERM, and SIGCONT in case it is stopped. */
async function endDaemon(found: FoundDaemon, recorded: readonly DaemonOnFile[]): Promise<boolean> {
  if ("socket" in found) {
    const hasEnded = await stopDaemon(found.socket).then(
      () => true,
      () => false,
    );
    if (hasEnded) return true;
  }
  const known = recorded.find(({ pid }) => pid === found.pid);
  // Without a start time, the pid may belong to another process by now.
  if (!known || !(await isKnownStart(known.startedAt))) return false;
  const { pid, startedAt } = known;
  const deadline = performance.now() + END_MS;
  if (await isRunning(pid, startedAt)) for (const signal of ["SIGTERM", "SIGCONT"] as const) process.kill(pid, signal);
  while (await isRunning(pid, startedAt)) {
    if (performance.now() > deadline) return false;
    await sleep(LOOK_MS);
  }
  return true;
}

/** Time limit of `endDaemon`, ms. Longer than the default of `--drain-ms`. */
const END_MS = 60_000;
const LOOK_MS = 50;

type Servers = Awaited<ReturnType<Store["leases"]["servers"]>>;

/** Lists the servers on the store of this state folder; empty if the store cannot tell. */
async function otherServers(): Promise<Servers> {
  if (!(await hasDriver())) return [];
  return withStoreIfAny(
    {},
    async ({ leases }) => leases.servers(),
    () => [],
  ).catch(() => []);
}

function serversLine(servers: Servers): string {
  if (servers.length === 0) return "";
  const each = servers.map(({ pid, urls: [url] }) => {
    const where = url === undefined ? "" : ` (${url.replace(/\/\*$/, "")})`;
    return `pid ${String(pid)}${where}`;
  });
  return `Other servers use the store, and run on: ${each.join(", ")}.\n`;
}

function turnsOf(daemons: readonly FoundDaemon[]): RunningDaemon["turns"] {
  return daemons.flatMap((each) => ("turns" in each ? each.turns : []));
}

/** Asks only if turns run or may run. Throws ConfigError without a terminal. */
async function confirmInterrupt(daemons: readonly FoundDaemon[]): Promise<boolean> {
  const turns = turnsOf(daemons).filter(({ waits }) => waits === undefined);
  const unknown = daemons.flatMap((each) => ("turns" in each ? [] : [each]));
  if (turns.length + unknown.length === 0) return true;
  const named = turns.map(({ sessionId, title }) => `${sessionId}  ${escapeControlChars(title)}`.trimEnd());
  const known = `${count(turns.length, "running turn")} will be interrupted, unless they end within --drain-ms`;
  const cannot = `${count(unknown.length, "daemon")} cannot be asked for running turns, which would be interrupted`;
  const what = [...(turns.length > 0 ? [known] : []), ...(unknown.length > 0 ? [cannot] : [])].join("; ");
  const all = [...named, ...unknown.map((each) => unreachableLine(each).trimEnd())];
  if (!hasTerminal()) {
    const listed = all.join(", ");
    throw new ConfigError(`daemon stop: ${what}: ${listed}. Without a terminal to confirm on, --yes is required.`);
  }
  process.stderr.write(`${what}:\n${all.map((line) => `  ${line}\n`).join("")}`);
  return isConfirmed("Stop?");
}

type FoundDaemon = RunningDaemon | UnreachableDaemon;

/** Finds the daemons of this state folder: `running` in order of start, and `unreachableDaemons`. */
async function findDaemons() {
  const state = stateFolder(process.env, process.platform);
  const folders = await socketFolders(state);
  const daemons = await describeDaemons(await listSockets(folders));
  const recorded = await daemonsOnFile(state, isRunning);
  return { folders, recorded, running: daemons.running, unreachable: unreachableDaemons(daemons, recorded) };
}

/**
 * Returns the daemons with these names, or the only daemon. Throws ConfigError for an unknown name, or if several could be
 * meant.
 */
function chooseDaemons(found: readonly FoundDaemon[], names: readonly string[]): readonly FoundDaemon[] {
  const unknown = names.find((name) => !found.some((each) => each.name === name));
  if (unknown !== undefined) {
    const meant = didYouMean(
      unknown,
      found.map(({ name }) => name),
    );
    throw new ConfigError(`daemon stop: no daemon is named "${unknown}".${meant} \`daemon status\` lists them.`);
  }
  if (names.length === 0 && found.length > 1) {
    const all = found.map(({ name }) => name).join(", ");
    const number = String(found.length);
    throw new ConfigError(`daemon stop: ${number} daemons run: ${all}. Name those that you mean, or use --all.`);
  }
  return found.filter(({ name }) => names.length === 0 || names.includes(name));
}
