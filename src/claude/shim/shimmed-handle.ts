import { setTimeout as sleep } from "node:timers/promises";
import { parseJson } from "../../domain/json.ts";
import type { ShimRef } from "../../domain/process.ts";
import { isOutOfDescriptors, outOfDescriptorsText } from "../../security/descriptors.ts";
import type { ListedProcess } from "../../shim/protocol.ts";
import { settlesWithin } from "../process/control.ts";
import { DetachedProcesses } from "../supervise/detached-processes.ts";
import type { Guards } from "../supervise/guards.ts";
import { limitLines } from "../supervise/output.ts";
import type { ProcessTag } from "../supervise/process-tag.ts";
import type { Exit, ShimControls, ProcessHandle } from "../supervise/process-handle.ts";
import { endTagged, hasTag } from "../supervise/tagged-processes.ts";
import { killTree, startTime } from "../supervise/tree.ts";
import type { ShimConnection } from "./connection.ts";
import type { Variables } from "../environment-records.ts";
import { fieldsOf, textOf } from "./outbound.ts";
import { readEndReason } from "./why-gone.ts";
import type { ShimmedExit } from "./shimmed-exit.ts";
import { ShimmedProcess } from "./shimmed-process.ts";

/** Starts processes behind a shim, and attaches to processes of a former server. */

const GONE_WITHIN_MS = 5000;
const LOOK_EVERY_MS = 50;

interface ProcessInShim {
  /** Id of the process in its shim. */
  readonly id: string;
  readonly epoch: number;
  readonly shim: ShimRef;
  readonly guards: Pick<Guards, "exitOf" | "isIsolated">;
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Environment record of the process, given to the next owner. */
  readonly record: Variables;
}

/** `onSpawned` is called once the process runs or has failed to start. */
export function startInShim(
  connection: ShimConnection,
  { command, tag, ...place }: ProcessInShim & { readonly command: Command; readonly tag: ProcessTag },
  onSpawned: (spawned: ProcessHandle) => void,
): ShimmedProcess {
  const { args, command: program, cwd, env, record } = command;
  const { epoch, id } = place;
  const onStarted = (identity: Identity | undefined) =>
    onSpawned({ ...follow({ connection, process, tag, ...place }, identity), fault });
  const start = {
    command: program,
    args,
    ...(cwd !== undefined && { cwd }),
    env: Object.fromEntries(
      Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    tag: formatTag(tag),
    record: JSON.stringify(record),
  };
  const process = ShimmedProcess.start({ connection, id, epoch, onStarted }, start);
  const fault = limitLines(process, () => process.killTree());
  return process;
}

export interface ReattachedProcess {
  readonly process: ShimmedProcess;
  readonly spawned: ProcessHandle;
  /** Number of lines that can no longer be read, partial text excluded. */
  readonly lost: number;
  /** Environment record given at the start of the process. */
  readonly record: Variables;
}

/** The process belongs to another server and must not be ended here. */
export class TakenOverError extends Error {
  override readonly name = "TakenError";
}

/** Continues after `line`. Rejects with the reason if impossible. */
export async function attachInShim(
  connection: ShimConnection,
  { line, ...place }: ProcessInShim & { readonly line: number },
): Promise<ReattachedProcess> {
  const { epoch, id, shim } = place;
  const listed = (await connection.list()).find((each) => each.id === id);
  if (!listed) throw new Error((await readEndReason(shim, id)) ?? "its shim no longer has the process");
  if (listed.epoch > epoch) throw new TakenOverError("another server has taken it over");
  const attaching = ShimmedProcess.attach({ connection, id, epoch }, line);
  const { attached, process } = await attaching.catch(async (error: Error) => {
    // The shim may be ending the process right now.
    const why = await readEndReason(shim, id);
    throw why === undefined ? error : new Error(why);
  });
  const fault = limitLines(process, () => process.killTree());
  const spawned = { ...follow({ connection, process, tag: parseTag(listed), ...place }, attached), fault };
  return { process, spawned, lost: attached.lost, record: parseRecord(attached.record) };
}

/** Ends an attached process that this server does not continue. Resolves once the process is gone and forgotten by its shim. */
export async function endAttached({ process, spawned }: ReattachedProcess): Promise<void> {
  // Ends the SDK's side: without an SDK nothing answers requests, and the exit must not wait for answers.
  process.stdin.end();
  const { exit, inShim: held } = spawned;
  if (held && !(await endGracefully(held, exit))) spawned.kill();
  await spawned.gone;
  held?.acknowledge(Number.MAX_SAFE_INTEGER);
}

const INPUT_MS = 500;
const TERM_MS = 2000;

/** Ends the input, then sends `SIGTERM`; false if the process survives both. */
export async function endGracefully(held: ShimControls, exit: Promise<unknown>): Promise<boolean> {
  held.endInput();
  if (await settlesWithin(INPUT_MS, exit)) return true;
  held.terminate();
  return settlesWithin(TERM_MS, exit);
}

interface Identity {
  readonly pid: number;
  readonly startedAt: string;
}

interface FollowedProcess extends ProcessInShim {
  readonly connection: ShimConnection;
  readonly process: ShimmedProcess;
  readonly tag: ProcessTag;
}

function follow(
  { connection, guards, process, shim, tag }: FollowedProcess,
  identity: Identity | undefined,
): Omit<ProcessHandle, "fault"> {
  const pid = identity?.pid;
  const exit = process.exit.then((ended) => guards.exitOf(toExit(ended)));
  const detached = new DetachedProcesses({ tag, pid, isIsolated: guards.isIsolated });
  const common = { pid, exit, detached, stderrTail: () => process.stderrText };
  if (!identity) return { ...common, gone: exit, kill: () => undefined, inShim: undefined };
  const endAll = async () => {
    // Another server owns the process now, with all descendants.
    if ((await process.exit).isTaken) return;
    await endTagged((found) => hasTag(found, tag), GONE_WITHIN_MS).catch(() => undefined);
    connection.send({ t: "reaper", line: `-${String(identity.pid)}` });
  };
  const kill = () => {
    process.killTree();
    void killAnyway(process, identity);
  };
  return { ...common, gone: exit.then(endAll), kill, inShim: shimControls(process, identity, shim) };
}

function shimControls(process: ShimmedProcess, { startedAt }: Identity, shim: ShimRef): ShimControls {
  return {
    shim,
    startedAt,
    pending: process.pending,
    lastLine: () => process.lastLine,
    own: (epoch) => process.own(epoch),
    acknowledge: (line) => process.acknowledge(line),
    settle: (requestId) => process.settle(requestId),
    letGo: () => process.letGo(),
    endInput: () => process.endInput(),
    terminate: () => process.terminate(),
  };
}

/** Kills the process if the shim is frozen, or waits for descendants that hold the output open. */
async function killAnyway(process: ShimmedProcess, { pid, startedAt }: Identity): Promise<void> {
  const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), GONE_WITHIN_MS).unref());
  if ((await Promise.race([process.exit, late])) !== "late") return;
  const isThere = async () => (await startTime(pid).catch(() => startedAt)) === startedAt;
  if (await isThere()) await killTree(pid).catch(() => undefined);
  const deadline = performance.now() + GONE_WITHIN_MS;
  while (await isThere()) {
    if (performance.now() > deadline) return;
    await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  }
  process.presumeEnd();
}

function toExit({ code, error, signal }: ShimmedExit): Exit {
  if (!error) return { code, signal };
  return {
    code,
    signal,
    error: isOutOfDescriptors(error) ? new Error(outOfDescriptorsText(), { cause: error }) : error,
  };
}

function parseRecord(record: string): Variables {
  return Object.fromEntries(Object.entries(fieldsOf(parseJson(record))).map(([name, value]) => [name, textOf(value)]));
}

/** Formats a tag for a shim and its reaper. */
function formatTag({ number = "", value }: ProcessTag): string {
  return `${number} ${value}`;
}

function parseTag({ tag }: ListedProcess): ProcessTag {
  const [, number = "", value = ""] = /^(\d*) (.*)$/.exec(tag) ?? [];
  return { value, number: number === "" ? undefined : number };
}
