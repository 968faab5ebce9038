import { parseArgs, type ParseArgsConfig } from "node:util";
import { hasTerminal, isConfirmed } from "./confirm.ts";
import { logs } from "./daemon/logs.ts";
import { nestingDepth } from "./preflight.ts";
import { ConfigError } from "../config/error.ts";
import { didYouMean } from "../domain/suggest.ts";
import { stateFolder } from "../config/state-folder.ts";
import { socketFolders } from "../daemon/folders.ts";
import { givenUpShims, type GivenUp } from "../daemon/shim-sockets.ts";
import { socketsIn } from "../daemon/socket.ts";
import { describeDaemons, stopDaemon, type RunningDaemon } from "../daemon/status.ts";
import { escapeControlChars } from "../security/control-chars.ts";

/** `claude-agents-mcp daemon VERB`: one server for many clients, which outlives them all. */

/** Resolves to the exit code; to undefined when the command goes on by itself. Throws ConfigError. */
export async function daemon([verb = "status", ...rest]: string[]): Promise<number | undefined> {
  switch (verb) {
    case "run": {
      const { run } = await import("./daemon/run.ts");
      await run(rest);
      return undefined;
    }
    case "status":
      return status(readFlags(verb, rest, { json: BOOLEAN }));
    case "stop":
      return stop(readFlags(verb, rest, { all: BOOLEAN, json: BOOLEAN, yes: BOOLEAN }));
    case "logs":
      return logs(readFlags(verb, rest, { follow: { ...BOOLEAN, short: "f" } }));
    default:
      throw new ConfigError(
        `daemon: unknown verb "${verb}".${didYouMean(verb, VERBS)} It takes run, status, stop and logs.`,
      );
  }
}

const VERBS = ["run", "status", "stop", "logs"];
const BOOLEAN = { type: "boolean" } as const;

/** Of a verb that takes these flags, and names of daemons. Throws ConfigError. */
function readFlags<T extends NonNullable<ParseArgsConfig["options"]>>(verb: string, args: string[], options: T) {
  try {
    return parseArgs({ args, options, allowPositionals: verb !== "status" });
  } catch (error) {
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split(". ");
    const flags = Object.keys(options).map((name) => `--${name}`);
    const names = verb === "status" ? "" : " and names";
    throw new ConfigError(`daemon ${verb}: ${problem}. It takes ${flags.join(", ")}${names}.`);
  }
}

/** Those with the sockets of the daemons of this state folder. */
async function ownFolders(): Promise<readonly string[]> {
  return socketFolders(stateFolder(process.env, process.platform));
}

/** Exit code 1 when there is none. */
async function status({ values: { json } }: { values: { json?: boolean | undefined } }): Promise<number> {
  const folders = await ownFolders();
  const daemons = await findDaemons(folders);
  const shimsGivenUp = await givenUpShims(folders);
  const running = daemons.length === 0 ? "No daemon runs.\n" : daemons.map(paragraph).join("");
  const text = `${running}${shimsGivenUp.map(givenUpLine).join("")}`;
  process.stdout.write(json === true ? `${JSON.stringify({ daemons, shimsGivenUp })}\n` : text);
  return daemons.length === 0 ? 1 : 0;
}

function paragraph(each: RunningDaemon): string {
  const { differs, log, name, nodeVersion, pid, processes, proxies, sessions, startedAt, state, version } = each;
  const work = `${count(proxies, "client")}, ${count(sessions, "session")} at work, ${count(processes, "Claude Code process", "es")}`;
  const lines = [
    `${name}  ${state}, ${work}`,
    `  version ${version} on Node ${nodeVersion}, pid ${String(pid)}, since ${startedAt}`,
    ...(log === undefined ? [] : [`  log: ${log}`]),
    ...shimLines(each),
    ...(differs.length === 0 ? [] : [`  unlike the others in: ${differs.join(", ")}`]),
  ];
  return `${lines.join("\n")}\n`;
}

function shimLines({ lastDeath, shim }: RunningDaemon): string[] {
  const { fallback, setting, shims = [] } = shim ?? {};
  const held = shims.reduce((sum, each) => sum + each.processes.length, 0);
  const none = fallback === undefined ? undefined : `  shim: none, so turns end with it (${fallback})`;
  const off = setting === "off" ? "  shim: off, so turns end with it" : undefined;
  const own = `  ${count(shims.length, "shim")} with ${count(held, "Claude Code process", "es")}: ${shims.map(({ pid }) => String(pid)).join(", ")}`;
  const line = none ?? off ?? (shims.length > 0 ? own : undefined);
  const death =
    lastDeath && `  the one before it (pid ${String(lastDeath.pid)}) has died: ${escapeControlChars(lastDeath.why)}`;
  return [line, death].filter((each) => each !== undefined);
}

function givenUpLine({ daemon: name, pid, processes }: GivenUp): string {
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

/** Drains them and waits for their end. Exit code 1 when there is none, or when the person at the terminal says no. */
async function stop({ positionals: names, values: { all, json, yes } }: Stop): Promise<number> {
  if (nestingDepth() > 0) {
    throw new ConfigError("daemon stop cannot run inside a session of claude-agents-mcp. Run it in your own shell.");
  }
  const found = await findDaemons(await ownFolders());
  const meant = all === true ? found : chosen(found, names);
  if (yes !== true && !(await mayInterrupt(meant))) {
    process.stderr.write("No daemon was stopped.\n");
    return 1;
  }
  if (meant.length > 0) process.stderr.write(`Waiting for ${count(meant.length, "daemon")} to end.\n`);
  await Promise.all(meant.map(async ({ socket }) => stopDaemon(socket)));
  const stopped = meant.map(({ name, pid }) => ({ name, pid }));
  const text = stopped.length === 0 ? "No daemon runs.\n" : `${count(stopped.length, "daemon")} stopped.\n`;
  process.stdout.write(json === true ? `${JSON.stringify({ stopped })}\n` : text);
  return stopped.length === 0 ? 1 : 0;
}

/** Asks only where a turn runs. Throws ConfigError where there is no terminal to ask on. */
async function mayInterrupt(daemons: readonly RunningDaemon[]): Promise<boolean> {
  const turns = daemons.flatMap((each) => each.turns);
  if (turns.length === 0) return true;
  const named = turns.map(({ sessionId, title }) => `${sessionId}  ${escapeControlChars(title)}`.trimEnd());
  const what = `${count(turns.length, "running turn")} will be interrupted, unless they end within --drain-ms`;
  if (!hasTerminal()) {
    const all = named.join(", ");
    throw new ConfigError(`daemon stop: ${what}: ${all}. Without a terminal to confirm on, --yes is required.`);
  }
  process.stderr.write(`${what}:\n${named.map((line) => `  ${line}\n`).join("")}`);
  return isConfirmed("Stop?");
}

/** Those of this state folder, in the order of their start. Those that do not answer are named on stderr. */
async function findDaemons(folders: readonly string[]): Promise<readonly RunningDaemon[]> {
  const { running, silent } = await describeDaemons(await socketsIn(folders));
  for (const { name } of silent) {
    process.stderr.write(`claude-agents-mcp: the daemon "${name}" does not answer.\n`);
  }
  return running;
}

/** Those with these names, or the only one. Throws ConfigError where a name is unknown, or where it is not clear which is meant. */
function chosen(found: readonly RunningDaemon[], names: readonly string[]): readonly RunningDaemon[] {
  const unknown = names.find((name) => !found.some((each) => each.name === name));
  if (unknown !== undefined) {
    throw new ConfigError(`daemon stop: no daemon is named "${unknown}". \`daemon status\` lists them.`);
  }
  if (names.length === 0 && found.length > 1) {
    const all = found.map(({ name }) => name).join(", ");
    const number = String(found.length);
    throw new ConfigError(`daemon stop: ${number} daemons run: ${all}. Name those that you mean, or use --all.`);
  }
  return found.filter(({ name }) => names.length === 0 || names.includes(name));
}
