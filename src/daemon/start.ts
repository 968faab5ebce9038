import { spawn, type ChildProcess, type SpawnOptions, type StdioOptions } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { daemonEnvironment, THREADS } from "./environment.ts";
import { Patience } from "./patience.ts";
import { PRODUCT } from "../domain/names.ts";

/** Starts a daemon that does not end with its starter, however that is ended, nor with the package it was started from. */

export interface DaemonStart {
  readonly name: string;
  /** Arguments of `daemon run`. */
  readonly words: readonly string[];
  readonly stateFolder: string;
  /** The script of the command line: `dist/cli/main.js`. */
  readonly main: string;
  /** How long it may take to be ready, ms. */
  readonly ms: number;
  readonly platform?: NodeJS.Platform;
}

/** The descriptor on which it says to its starter that it is ready, or why it is not. */
export const READY_FD = 3;

export function readyLine(name: string): string {
  return `ready ${name}`;
}

type Options = Pick<SpawnOptions, "cwd" | "detached" | "env">;

/**
 * The shell ends at once, so that the daemon has no parent among the processes of the client, which many clients end with all
 * their descendants; and it leads a session of its own, so that no signal to the client's group or terminal reaches it.
 */
const IN_BACKGROUND = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &';

function startThroughShell(command: readonly string[], log: string, options: Options): ChildProcess {
  const stdio: StdioOptions = ["ignore", "ignore", "ignore", "pipe"];
  return spawn("/bin/sh", ["-c", IN_BACKGROUND, "sh", log, ...command], { ...options, stdio });
}

/**
 * Windows has no such shell. The process is detached from the console of the client and outlives it, but its parent stays the
 * process of the client: what ends that with all its descendants (`taskkill /T`) ends the daemon.
 */
function startDirectly(
  [program = process.execPath, ...words]: readonly string[],
  log: string,
  options: Options,
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
 * Resolves when it is ready, to its name: another than expected where the package was replaced since this process began. Rejects
 * with why it is not ready.
 */
export async function startDaemon(start: DaemonStart): Promise<string> {
  const { main, ms, name: expected, platform = process.platform, stateFolder, words } = start;
  const log = logOf(stateFolder, expected);
  const lengthBefore = await makeLog(stateFolder, log);
  const ready = ["daemon", "run", "--ready-fd", String(READY_FD)];
  const command = [process.execPath, ...process.execArgv, main, ...ready, ...words];
  const options = { cwd: stateFolder, detached: true, env: environmentOfDaemon() };
  // No await between its start and `wordOf`: Node discards what a process has said if it ends before a listener is there.
  const child = platform === "win32" ? startDirectly(command, log, options) : startThroughShell(command, log, options);
  child.unref();
  const said = await wordOf(child, ms);
  const [, name] = /^ready (\S+)$/.exec(said) ?? [];
  if (name !== undefined) return name;
  throw new Error(said === "" ? ((await lastLineOf(log, lengthBefore)) ?? "it ended without a word") : said);
}

/** What it says first; "" when it ends without a word. Rejects when it says nothing in time. */
async function wordOf(child: ChildProcess, ms: number): Promise<string> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a pipe that was asked for above
  const pipe = child.stdio[READY_FD] as Readable;
  return new Promise((resolve, reject) => {
    let said = "";
    const done = () => {
      patience.end();
      pipe.destroy();
      resolve(said.trim());
    };
    const patience = new Patience(ms, () => {
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
 * What a shim starts when the daemon has died: the same daemon, with the same log. It has no parent among the processes of a client
 * as it is.
 */
export function restartOf({ main, name, stateFolder, words }: Omit<DaemonStart, "ms">) {
  const command = [process.execPath, ...process.execArgv, main, "daemon", "run", ...words];
  const log = logOf(stateFolder, name);
  return {
    command: "/bin/sh",
    args: ["-c", 'log=$1; shift; exec "$@" </dev/null >>"$log" 2>&1', "sh", log, ...command],
    env: environmentOfDaemon(),
    cwd: stateFolder,
  };
}

/** Files that do not answer hold up to half of the threads of a daemon: Node's own number would be 4. */
function environmentOfDaemon(): Record<string, string> {
  return { ...daemonEnvironment(process.env), [THREADS]: "16" };
}

export function logFolder(stateFolder: string): string {
  return join(stateFolder, "logs");
}

/** The log of the daemon of this name. */
export function logOf(stateFolder: string, name: string): string {
  return join(logFolder(stateFolder), `daemon-${name}.log`);
}

/** Resolves to its length so far. */
async function makeLog(stateFolder: string, log: string): Promise<number> {
  await mkdir(logFolder(stateFolder), { recursive: true, mode: 0o700 });
  const file = await open(log, "a", 0o600);
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** What it has written last, where it could not say why it ended. */
async function lastLineOf(log: string, lengthBefore: number): Promise<string | undefined> {
  const text = await readFile(log).catch(() => Buffer.alloc(0));
  const line = text.subarray(lengthBefore).toString("utf8").trimEnd().split("\n").at(-1)?.slice(0, 300);
  return line === undefined || line === "" ? undefined : line.replace(`${PRODUCT}: `, "");
}
