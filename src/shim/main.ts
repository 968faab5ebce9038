import { appendFileSync, closeSync, openSync, readFileSync, statSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { startTime } from "../claude/supervise/tree.ts";
import { EndedRecord } from "./ended.ts";
import type { Program, RestartProgram } from "./reaper-and-restarter.ts";
import { ShimServer } from "./server.ts";

/**
 * Program `dist/shim/shim.js`. Reads one JSON document from stdin (`ShimArguments`), prints `ready PID STARTEDAT` or an error
 * as one line, and then lets go of stdin and stdout. Loads nothing after the start, because the package may be deleted.
 */

interface ShimArguments {
  /** Path of the socket, in a folder that only the user can enter. */
  readonly socket: string;
  readonly daemon: string;
  readonly keepMs: number;
  readonly restart?: RestartProgram;
  /** Time without an owner before `restart` runs, ms. Default: `RESTART_AFTER_MS`. */
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
  // Ignores signals that are meant for the terminal and process group of the starter.
  for (const signal of ["SIGHUP", "SIGINT"] as const) process.on(signal, () => undefined);
  process.on("uncaughtException", (error) => {
    log(error.stack ?? error.message);
    process.exit(1);
  });
  writeSync(STDOUT, `ready ${String(identity.pid)} ${identity.startedAt}\n`);
  letGo(STDIN, "r");
  letGo(STDOUT, "w");
}

/** Replaces `descriptor` by `/dev/null`. `openSync` takes the lowest free descriptor, which is `descriptor`. */
function letGo(descriptor: number, mode: "r" | "w"): void {
  closeSync(descriptor);
  openSync("/dev/null", mode);
}

/** Throws a message for the starter. The starter is of the same build, so only values that could fail later are checked. */
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

/** Maximum size of the log, bytes. */
const MAX_LOG = 65_536;

/**
 * Returns a logger to `daemon-NAME.shim.log`, beside the logs of daemons and swept like them. Empties the file above `MAX_LOG`.
 */
function logIn(stateFolder: string, daemon: string): (text: string) => void {
  const file = join(stateFolder, "logs", `daemon-${daemon}.shim.log`);
  return (text) => {
    try {
      if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG) truncateSync(file);
      appendFileSync(file, `${new Date().toISOString()} ${String(process.pid)} ${text}\n`, { mode: 0o600 });
    } catch {
      // Disk full or folder deleted: no place is left for a report.
    }
  };
}
