import { ShimConnection } from "../../../src/claude/shim/connection.ts";
import { startInShim } from "../../../src/claude/shim/shimmed-handle.ts";
import type { ProcessHandle } from "../../../src/claude/supervise/process-handle.ts";
import type { Attached, FromShim, ListedProcess, ToShim } from "../../../src/shim/protocol.ts";
import { HELLO, SHIM_IDENTITY, scriptedShim } from "./scripted-shim.ts";

/** The server's side of a scripted shim. */

const CLIENT = { daemon: "d" };
export const ID = "p";
/** Above the largest pid of Linux, so that no real process can be ended. */
export const PROCESS_IDENTITY = { pid: 2 ** 22 + 1, startedAt: "1" };
export const ATTACHED: Attached = {
  t: "attached",
  id: ID,
  ...PROCESS_IDENTITY,
  lost: 0,
  evicted: 0,
  record: 0,
  initialize: false,
  open: [],
  written: [],
};
export const LISTED_PROCESS: ListedProcess = { id: ID, ...PROCESS_IDENTITY, epoch: 3, tag: " store/tag" };
const guards = { isIsolated: false, exitOf: <Exit>(exit: Exit) => exit };

/** Connects to a shim that answers each message type with the message in `answers`. */
export async function connectOwner(answers: Partial<Record<ToShim["t"], FromShim>>) {
  const shim = await scriptedShim((message) => (message.t === "hello" ? HELLO : answers[message.t]));
  const connection = await ShimConnection.open(shim.address, CLIENT);
  const ref = { address: shim.address, ...SHIM_IDENTITY, daemon: "d", sdk: "1", keepMs: 0 };
  return { shim, connection, place: { id: ID, epoch: 4, shim: ref, guards } };
}

export const START_OPTIONS = {
  command: { command: "claude", args: ["-p"], cwd: undefined, env: { A: "1", B: undefined }, record: { A: "0" } },
  tag: { number: "9", value: "store/tag" },
};

export async function startScripted(answer: FromShim) {
  const { connection, place, shim } = await connectOwner({ start: answer });
  const errors: Error[] = [];
  const spawned = await new Promise<ProcessHandle>((resolve) => {
    startInShim(connection, { ...START_OPTIONS, ...place }, resolve).on("error", (error: Error) => errors.push(error));
  });
  return { connection, errors, shim, spawned };
}
