import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Identity } from "./identity.ts";
import { PRODUCT } from "../domain/names.ts";

/** Starts a daemon that does not end with its starter, however that is ended, nor with the package it was started from. */

export interface DaemonStart {
  readonly identity: Identity;
  readonly stateFolder: string;
  /** The script of the command line: `dist/cli/main.js`. */
  readonly main: string;
  /** How long it may take to be ready, ms. */
  readonly ms: number;
}

/** The descriptor on which it says to its starter that it is ready, or why it is not. */
export const READY_FD = 3;

export function readyLine(name: string): string {
  return `ready ${name}`;
}

/**
 * The shell ends at once, so that the daemon has no parent among the processes of the client, which many clients end with all
 * their descendants; and it leads a session of its own, so that no signal to the client's group or terminal reaches it.
 */
const IN_BACKGROUND = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &';

/**
 * Resolves when it is ready, to its name: another than expected where the package was replaced since this process began. Rejects
 * with why it is not ready.
 */
export async function startDaemon({ identity, main, ms, stateFolder }: DaemonStart): Promise<string> {
  const log = logOf(stateFolder, identity.name);
  const lengthBefore = await makeLog(stateFolder, log);
  const command = [process.execPath, ...process.execArgv, main, "daemon", "run", "--ready-fd", String(READY_FD)];
  const child = spawn("/bin/sh", ["-c", IN_BACKGROUND, "sh", log, ...command, ...identity.argv], {
    cwd: stateFolder,
    detached: true,
    env: identity.environment,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    windowsHide: true,
  });
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
      clearTimeout(timer);
      pipe.destroy();
      resolve(said.trim());
    };
    const timer = setTimeout(() => {
      pipe.destroy();
      reject(new Error(`it was not ready within ${String(ms)} ms`));
    }, ms);
    child.once("error", reject);
    pipe.on("error", done);
    pipe.on("end", done);
    pipe.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
      if (said.endsWith("\n")) done();
    });
  });
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
