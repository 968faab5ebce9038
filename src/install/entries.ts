import { existsSync } from "node:fs";
import { basename, isAbsolute, resolve } from "node:path";
import { z } from "zod";
import { fileOf, readPresence, readEntry, serverNames, type Aim, type Presence } from "./change.ts";
import { UnusableFile } from "./format.ts";
import { JsonObject } from "../domain/json.ts";
import { invocationOf, realOf, type Invocation, type Running } from "./invocation.ts";
import { findProgram } from "../security/find-program.ts";
import { hostOfEntry, readSshArgs, type SshCall } from "./ssh/host.ts";

/** Finds entries of this server in clients' files, and the program that each starts. */

export interface EntryState {
  readonly file: string;
  readonly state: Presence | "unreadable";
  readonly problem?: string;
}

/** Compares the entry in the file with the entry of `install`. Returns `null` if the client has no such scope. */
export async function readEntryState(aim: Aim, invocation: Invocation): Promise<EntryState | null> {
  const file = fileOf(aim);
  if (file === undefined) return null;
  const read = await tryRead(async () => readPresence(aim, aim.client.entry(invocation)));
  return "problem" in read ? { file, state: "unreadable", ...read } : { file, state: read.value };
}

/** Program that an entry starts. */
export type Target =
  /** This installation. */
  | { readonly kind: "this" }
  /** Another installation, by the path of its script or program. */
  | { readonly kind: "other"; readonly path: string }
  /** A program or script that does not exist, as written in the entry. */
  | { readonly kind: "missing"; readonly path: string }
  /** A package, through npx. */
  | { readonly kind: "npx"; readonly spec: string }
  /** No program: the client connects to a server over HTTP. */
  | { readonly kind: "http" }
  /** A server on another machine. */
  | { readonly kind: "ssh"; readonly call: SshCall }
  /** A command with variables that only the client can replace. */
  | { readonly kind: "variable" }
  /** A file that cannot be read. `problem` begins with the path of the file. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface StartedProgram {
  readonly target: Target;
  /** Arguments after the program, script or package. */
  readonly words: readonly string[];
  /** Environment variables in the entry, except values that only the client can complete. */
  readonly env: Readonly<Record<string, string>>;
  /** The whole entry. */
  readonly entry: JsonObject;
}

/** True if `word` contains a variable that the client replaces. */
export function isVariable(word: string): boolean {
  return /\$\{|\$[A-Z_]|%\w+%|\{(?:env|file):/.test(word);
}

/** Returns `undefined` if the client has no such scope, or the file no entry. */
export async function readStartedProgram(aim: Aim, running: Running): Promise<StartedProgram | undefined> {
  if (fileOf(aim) === undefined) return undefined;
  const read = await tryRead(async () => readEntry(aim));
  if ("problem" in read) return { target: { kind: "unreadable", ...read }, words: [], env: {}, entry: {} };
  const { value: entry } = read;
  if (entry === undefined) return undefined;
  const { args, command } = Words.parse(entry);
  const words = [...command, ...args];
  // On Windows, `cmd /c` starts scripts of npm.
  const [program, ...rest] = /^cmd(?:\.exe)?$/i.test(words[0] ?? "") ? words.slice(2) : words;
  return { ...(await findTarget(program, rest, running)), env: variablesOf(entry, running.env), entry };
}

/** Finds entries of servers on other machines. `aim` is the entry of the server on this machine. */
export async function hostEntries(aim: Aim, running: Running): Promise<(StartedProgram & { readonly aim: Aim })[]> {
  const hosts = (await serverNames(aim)).flatMap((name) => hostOfEntry(name) ?? []);
  const started = hosts.map(async (host) => {
    const found = await readStartedProgram({ ...aim, host }, running);
    // Another server may have a name that begins like ours.
    return found?.target.kind === "ssh" ? [{ aim: { ...aim, host }, ...found }] : [];
  });
  return (await Promise.all(started)).flat();
}

const Word = z.union([z.string().transform((word) => [word]), z.array(z.string())]).catch([]);
const Words = z.object({ command: Word, args: Word });

/** Reads variables under all names in use: opencode has `environment`, Codex lists names of its own variables in `env_vars`. */
function variablesOf(entry: JsonObject, own: Running["env"]): Record<string, string> {
  const objects = [entry["env"], entry["environment"]].map((value) => JsonObject.safeParse(value).data ?? {});
  const passed = Word.parse(entry["env_vars"]).map((name) => [name, own[name]] as const);
  const all = [...passed, ...objects.flatMap((values) => Object.entries(values))];
  return Object.fromEntries(
    all.flatMap(([name, value]): [string, string][] => {
      const text = ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
      return text === undefined || isVariable(text) ? [] : [[name, text]];
    }),
  );
}

type FoundTarget = Pick<StartedProgram, "target" | "words">;

async function findTarget(
  program: string | undefined,
  args: readonly string[],
  running: Running,
): Promise<FoundTarget> {
  if (program === undefined) return { target: { kind: "http" }, words: [] };
  const name = basename(program.replaceAll("\\", "/")).replace(/\.(?:exe|cmd)$/i, "");
  const call = name === "ssh" ? readSshArgs(args) : undefined;
  if (call) return { target: { kind: "ssh", call }, words: call.words };
  // A flag of Node may have a value before the script, so every word without a hyphen is a candidate.
  const named = args.flatMap((word, at) => (word.startsWith("-") ? [] : [{ word, at }]));
  const [first = { word: "", at: args.length }] = named;
  const started = name === "npx" || name === "node" ? [program, first.word] : [program];
  if (started.some((word) => word.startsWith("~") || isVariable(word)))
    return { target: { kind: "variable" }, words: [] };
  if (name === "npx") {
    const target = await packageTarget(first.word, running);
    return { target, words: args.slice(first.at + 1) };
  }
  const found = isAbsolute(program) ? program : await onPath(program, running);
  if (found === undefined || !existsSync(found)) {
    return { target: { kind: "missing", path: program }, words: name === "node" ? args.slice(first.at + 1) : args };
  }
  if (name !== "node") return chooseFile([{ path: found, at: -1 }], args, running);
  return chooseFile(
    named.map(({ at, word }) => ({ path: resolve(running.cwd, word), at })),
    args,
    running,
  );
}

interface Candidate {
  readonly path: string;
  /** Index in the arguments. */
  readonly at: number;
}

/** Finds this installation among the files that an entry names, otherwise an existing file. */
function chooseFile(candidates: readonly Candidate[], args: readonly string[], { script }: Running): FoundTarget {
  const own = realOf(script);
  const ours = candidates.find(({ path }) => own !== undefined && realOf(path) === own);
  const found = ours ?? candidates.find(({ path }) => existsSync(path));
  if (!found) {
    const [first = { path: "", at: args.length }] = candidates;
    return { target: { kind: "missing", path: first.path }, words: args.slice(first.at + 1) };
  }
  const words = args.slice(found.at + 1);
  return { target: ours ? { kind: "this" } : { kind: "other", path: found.path }, words };
}

async function onPath(program: string, { env, platform }: Running): Promise<string | undefined> {
  const endings = platform === "win32" ? [".exe", ".cmd", ""] : [""];
  const found = await Promise.all(endings.map(async (ending) => findProgram(program + ending, env)));
  return found.find((file) => file !== undefined);
}

/** Returns "this" if `npx` has started this installation too, from a package with an equal `spec`. */
async function packageTarget(spec: string, running: Running): Promise<Target> {
  const own = await invocationOf({ ...running, shared: false }, []);
  return own.args.includes(spec) ? { kind: "this" } : { kind: "npx", spec };
}

/** Returns `problem` if the file cannot be read or parsed. */
async function tryRead<T>(read: () => Promise<T>): Promise<{ readonly value: T } | { readonly problem: string }> {
  try {
    return { value: await read() };
  } catch (error) {
    const isOfFile = error instanceof UnusableFile || (error instanceof Error && "syscall" in error);
    if (!isOfFile) throw error;
    return { problem: error.message };
  }
}
