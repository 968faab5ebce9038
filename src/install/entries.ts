import { existsSync } from "node:fs";
import { basename, isAbsolute, resolve } from "node:path";
import { z } from "zod";
import { fileOf, presenceOf, presentEntry, type Aim, type Presence } from "./change.ts";
import { UnusableFile } from "./format.ts";
import { invocationOf, realOf, type Invocation, type Running } from "./invocation.ts";
import { findProgram } from "../security/programs.ts";

/** The entries of this server in the files of clients: which are there, and what each starts. */

export interface Cell {
  readonly file: string;
  readonly state: Presence | "unreadable";
  readonly problem?: string;
}

/** Compares the entry in the file with the one that `install` would write. Null where the client has no such scope. */
export async function cellOf(aim: Aim, invocation: Invocation): Promise<Cell | null> {
  const file = fileOf(aim);
  if (file === undefined) return null;
  const read = await readable(async () => presenceOf(aim, aim.client.entry(invocation)));
  return "problem" in read ? { file, state: "unreadable", ...read } : { file, state: read.value };
}

/** What an entry starts. */
export type Target =
  /** This installation. */
  | { readonly kind: "this" }
  /** Another one, by the path of its script or program. */
  | { readonly kind: "other"; readonly path: string }
  /** A program or script that does not exist, as the entry names it. */
  | { readonly kind: "missing"; readonly path: string }
  /** A package, through npx. */
  | { readonly kind: "npx"; readonly spec: string }
  /** Nothing: the client connects to a server over HTTP. */
  | { readonly kind: "http" }
  /** A command with variables, which only the client knows. */
  | { readonly kind: "variable" }
  /** The file cannot be read; the problem begins with its path. */
  | { readonly kind: "unreadable"; readonly problem: string };

/** Undefined where the client has no such scope, or the file no entry. */
export async function targetOf(aim: Aim, running: Running): Promise<Target | undefined> {
  if (fileOf(aim) === undefined) return undefined;
  const read = await readable(async () => presentEntry(aim));
  if ("problem" in read) return { kind: "unreadable", ...read };
  if (read.value === undefined) return undefined;
  const { args, command } = Started.parse(read.value);
  const words = [...command, ...args];
  // `cmd /c` starts the scripts of npm on Windows.
  return targetIn(/^cmd(?:\.exe)?$/i.test(words[0] ?? "") ? words.slice(2) : words, running);
}

const Words = z.union([z.string().transform((word) => [word]), z.array(z.string())]).catch([]);
const Started = z.object({ command: Words, args: Words });

async function targetIn([program, ...args]: readonly string[], running: Running): Promise<Target> {
  if (program === undefined) return { kind: "http" };
  if ([program, ...args].some((word) => /\$\{|%\w+%|^~/.test(word))) return { kind: "variable" };
  const name = basename(program.replaceAll("\\", "/")).replace(/\.(?:exe|cmd)$/i, "");
  const rest = args.filter((word) => !word.startsWith("-"));
  if (name === "npx") return packageTarget(rest[0] ?? "", running);
  const found = isAbsolute(program) ? program : await onPath(program, running);
  if (found === undefined || !existsSync(found)) return { kind: "missing", path: program };
  // Flags of Node may have values of their own in front of the script.
  const paths = name === "node" ? rest.map((word) => resolve(running.cwd, word)) : [found];
  const own = realOf(running.script);
  if (own !== undefined && paths.some((path) => realOf(path) === own)) return { kind: "this" };
  const path = paths.find((each) => existsSync(each));
  return path === undefined ? { kind: "missing", path: paths[0] ?? found } : { kind: "other", path };
}

async function onPath(program: string, { env, platform }: Running): Promise<string | undefined> {
  const endings = platform === "win32" ? [".exe", ".cmd", ""] : [""];
  const found = await Promise.all(endings.map(async (ending) => findProgram(program + ending, env)));
  return found.find((file) => file !== undefined);
}

/** It is this installation if that runs from the folder of the package runner, and is what the entry names. */
async function packageTarget(spec: string, running: Running): Promise<Target> {
  const own = await invocationOf({ ...running, shared: false }, []);
  return own.args.includes(spec) ? { kind: "this" } : { kind: "npx", spec };
}

/** With the message of the error where the file cannot be read. */
async function readable<T>(read: () => Promise<T>): Promise<{ readonly value: T } | { readonly problem: string }> {
  try {
    return { value: await read() };
  } catch (error) {
    const isOfFile = error instanceof UnusableFile || (error instanceof Error && "syscall" in error);
    if (!isOfFile) throw error;
    return { problem: error.message };
  }
}
