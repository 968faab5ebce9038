import { appendFileSync, closeSync, openSync, readFileSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { startTime } from "../claude/supervise/tree.ts";
import { EndedRecord } from "./ended.ts";
import type { Program, RestartProgram } from "./programs.ts";
import { ShimServer } from "./server.ts";

/**
 * The program `dist/shim/shim.js`. It reads one JSON document from stdin (ShimArguments), prints `ready PID STARTEDAT` or an error
 * as one line, and has let go of stdin and stdout then. It loads nothing after its start: its file may be deleted.
 */

interface ShimArguments {
  /** The path of the socket, in a folder that only its user can enter. */
  readonly socket: string;
  readonly daemon: string;
  readonly keepMs: number;
  readonly restart?: RestartProgram;
  /** Without an owner, until `restart` is run; 2 s by default. */
  readonly restartAfterMs?: number;
  readonly reaper?: Program;
  readonly stateFolder: string;
}

const RESTART_AFTER_MS = 2_000;
const [STDIN, STDOUT] = [0, 1];

try {
  await run(argumentsIn(readFileSync(STDIN, "utf8")));
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  writeSync(STDOUT, `${text.replaceAll("\n", " ")}\n`);
  process.exit(1);
}

async function run({ daemon, keepMs, reaper, restart, restartAfterMs, socket, stateFolder }: ShimArguments) {
  process.chdir(stateFolder);
  const log = logIn(stateFolder, daemon);
  const identity = { pid: process.pid, startedAt: (await startTime(process.pid)) ?? "" };
  const onEnd = () => void server.close().then(() => process.exit());
  const ended = new EndedRecord(socket, identity);
  const onGivenUp = (id: string, why: string) => ended.add(id, why);
  const times = { keepMs, restartAfterMs: restartAfterMs ?? RESTART_AFTER_MS };
  const server = new ShimServer({ daemon, identity, ...times, reaper, restart, log, onEnd, onGivenUp });
  await server.listen(socket);
  process.on("SIGTERM", () => server.stop("SIGTERM"));
  // Those of the terminal and group in which it was started are not meant for it.
  for (const signal of ["SIGHUP", "SIGINT"] as const) process.on(signal, () => undefined);
  process.on("uncaughtException", (error) => {
    log(error.stack ?? error.message);
    process.exit(1);
  });
  writeSync(STDOUT, `ready ${String(identity.pid)} ${identity.startedAt}\n`);
  letGo(STDIN, "r");
  letGo(STDOUT, "w");
}

/** The lowest free descriptor is the one that was closed: nothing else opens any meanwhile. */
function letGo(descriptor: number, mode: "r" | "w"): void {
  closeSync(descriptor);
  openSync("/dev/null", mode);
}

/** Throws what is wrong. The starter is of the same build, so only what would be misunderstood later is checked. */
function argumentsIn(text: string): ShimArguments {
  const value: unknown = JSON.parse(text);
  if (isArguments(value)) return value;
  throw new Error("stdin: must hold the arguments of a shim as JSON: socket, daemon, keepMs and stateFolder.");
}

function isArguments(value: unknown): value is ShimArguments {
  if (typeof value !== "object" || value === null) return false;
  const { daemon, keepMs, socket, stateFolder }: Readonly<Record<string, unknown>> = { ...value };
  return [daemon, socket, stateFolder].every((each) => typeof each === "string") && typeof keepMs === "number";
}

/** Bytes. */
const MAX_LOG = 65_536;

/** `daemon-NAME.shim.log` among the daemons' logs, which are swept by their age. Emptied when it is too long. */
function logIn(stateFolder: string, daemon: string): (text: string) => void {
  const file = join(stateFolder, "logs", `daemon-${daemon}.shim.log`);
  return (text) => {
    try {
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG) truncateSync(file);
      appendFileSync(file, `${new Date().toISOString()} ${String(process.pid)} ${text}\n`, { mode: 0o600 });
    } catch {
      // A full disk, or a deleted folder: there is nowhere to say so.
    }
  };
}
