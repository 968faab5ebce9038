import { spawn, type ChildProcess, type SpawnOptions, type StdioOptions } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { daemonEnvironment, THREAD_POOL_SIZE } from "./daemon-environment.ts";
import { Countdown } from "./countdown.ts";
import { PRODUCT } from "../domain/names.ts";

/** Starts a daemon that outlives its starter, however the starter is ended, and the package of its starter. */

export interface DaemonStart {
  readonly name: string;
  /** Arguments of `daemon run`. */
  readonly words: readonly string[];
  readonly stateFolder: string;
  /** Script of the command line: `dist/cli/main.js`. */
  readonly main: string;
  /** Time limit for readiness, ms. */
  readonly ms: number;
  readonly platform?: NodeJS.Platform;
}

/** File descriptor on which the daemon reports to its starter: `readyLine`, or the reason for a failure. */
export const READY_FD = 3;

export function readyLine(name: string): string {
  return `ready ${name}`;
}

type ProcessOptions = Pick<SpawnOptions, "cwd" | "detached" | "env">;

/**
 * The shell exits at once, so that the daemon is not a descendant of the client: many clients kill all their descendants.
 * `detached` puts the daemon into a process session of its own, out of reach of signals to the client's group or terminal.
 */
const IN_BACKGROUND = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &';

function startThroughShell(command: readonly string[], log: string, options: ProcessOptions): ChildProcess {
  const stdio: StdioOptions = ["ignore", "ignore", "ignore", "pipe"];
  return spawn("/bin/sh", ["-c", IN_BACKGROUND, "sh", log, ...command], { ...options, stdio });
}

/**
 * Windows has no such shell. The daemon is detached from the client's console and outlives the client, but stays its child:
 * `taskkill /T` on the client ends the daemon.
 */
function startDirectly(
  [program = process.execPath, ...words]: readonly string[],
  log: string,
  options: ProcessOptions,
): ChildProcess {
  const file = openSync(log, "a", 0o600);
  try {
    const stdio: StdioOptions = ["ignore", file, file, "pipe"];
    return spawn(program, words, { ...options, stdio, windowsHide: true });
  } finally {
    closeSync(file);
  }
}

/**
 * Resolves to the name of the daemon once ready. The name differs from `start.name` if the package was replaced since this
 * process began. Rejects with the reason if the daemon does not get ready.
 */
export async function startDaemon(start: DaemonStart): Promise<string> {
  const { main, ms, name: expected, platform = process.platform, stateFolder, words } = start;
  const log = logPath(stateFolder, expected);
  const lengthBefore = await createLog(stateFolder, log);
  const ready = ["daemon", "run", "--ready-fd", String(READY_FD)];
  const command = [process.execPath, ...process.execArgv, main, ...ready, ...words];
  const options = { cwd: stateFolder, detached: true, env: startEnvironment() };
  // No `await` between the spawn and `readReadyLine`: Node discards output of a child that ends before a listener is attached.
  const child = platform === "win32" ? startDirectly(command, log, options) : startThroughShell(command, log, options);
  child.unref();
  const said = await readReadyLine(child, ms);
  const [, name] = /^ready (\S+)$/.exec(said) ?? [];
  if (name !== undefined) return name;
  throw new Error(said === "" ? ((await readLastLine(log, lengthBefore)) ?? "it ended without a message") : said);
}

/** Resolves to the first line on `READY_FD`, or to `""` if the daemon ends without a line. Rejects after `ms`. */
async function readReadyLine(child: ChildProcess, ms: number): Promise<string> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a pipe that was asked for above
  const pipe = child.stdio[READY_FD] as Readable;
  return new Promise((resolve, reject) => {
    let said = "";
    const done = () => {
      patience.end();
      pipe.destroy();
      resolve(said.trim());
    };
    const patience = new Countdown(ms, () => {
      pipe.destroy();
      reject(new Error(`it was not ready within ${String(ms)} ms`));
    });
    child.once("error", reject);
    pipe.on("error", done);
    pipe.on("end", done);
    pipe.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
      if (said.endsWith("\n")) done();
    });
  });
}

/**
 * Returns the command by which a shim starts its dead daemon again, with the old log. Needs no `&`: a shim is not a descendant
 * of a client.
 */
export function restartCommand({ main, name, stateFolder, words }: Omit<DaemonStart, "ms">) {
  const command = [process.execPath, ...process.execArgv, main, "daemon", "run", ...words];
  const log = logPath(stateFolder, name);
  return {
    command: "/bin/sh",
    args: ["-c", 'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1', "sh", log, ...command],
    env: startEnvironment(),
    cwd: stateFolder,
  };
}

/** Raises the pool to 16 threads, because hanging files hold up to half of a daemon's threads (Node's default is 4). */
function startEnvironment(): Record<string, string> {
  return { ...daemonEnvironment(process.env), [THREAD_POOL_SIZE]: "16" };
}

export function logFolder(stateFolder: string): string {
  return join(stateFolder, "logs");
}

/** Returns the path of the log of daemon `name`. */
export function logPath(stateFolder: string, name: string): string {
  return join(logFolder(stateFolder), `daemon-${name}.log`);
}

/** Creates the log. Resolves to its present size, bytes. */
async function createLog(stateFolder: string, log: string): Promise<number> {
  await mkdir(logFolder(stateFolder), { recursive: true, mode: 0o700 });
  const file = await open(log, "a", 0o600);
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** Returns the last line logged since `lengthBefore`, for a daemon that ended without a report on `READY_FD`. */
async function readLastLine(log: string, lengthBefore: number): Promise<string | undefined> {
  const text = await readFile(log).catch(() => Buffer.alloc(0));
  const line = text.subarray(lengthBefore).toString("utf8").trimEnd().split("\n").at(-1)?.slice(0, 300);
  return line === undefined || line === "" ? undefined : line.replace(`${PRODUCT}: `, "");
}
