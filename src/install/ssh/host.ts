import { ConfigError } from "../../config/error.ts";
import { PRODUCT } from "../../domain/names.ts";

/** Entry of a server on another machine, reached by OpenSSH: its name, its command, and such a command read back. */

export interface SshHost {
  readonly name: string;
  /** Destination as `ssh` takes it: an alias in its configuration, `user@host` or `ssh://user@host:port`. */
  readonly target: string;
}

/** Clients send tools as `mcp__SERVER__TOOL`, and models take names of 64 characters; the longest tool has 21. */
const NAME = /^[a-z\d](?:[\w-]{0,16}[a-z\d])?$/i;

/** Characters that `ssh` refuses in a host since version 9.6, because a proxy command of its user might give them to a shell. */
const UNSAFE = /[\s\p{Cc}'"`$;&<>|(){}]/u;

/** URL of a host, without a password or a path. */
const SSH_URL = /^ssh:\/\/(?:[^@/:]+@)?(?:\[[^\]/]+\]|[^@/:-][^@/:]*)(?::(?<port>\d{1,5}))?\/?$/i;

/** Returns what a destination is instead, in a sentence; `undefined` if `ssh` takes it. Does not repeat a password. */
function targetProblem(target: string): string | undefined {
  // OpenSSH would take the word for a flag, which may run a command.
  if (target === "" || target.startsWith("-") || UNSAFE.test(target))
    return `"${target}" cannot be a destination of ssh.`;
  const port = /^([^:]+):(\d+)$/.exec(target);
  if (port) return `"${target}" has a port, which ssh takes only as ssh://${port[1]}:${port[2]}.`;
  if (!/^ssh:\/\//i.test(target)) return undefined;
  const url = SSH_URL.exec(target);
  if (!url) return "the URL is not ssh://user@host:port (a password is never part of it: use a key).";
  return Number(url.groups?.["port"] ?? 22) > 65_535 ? `"${target}" has no valid port.` : undefined;
}

/** Reads `NAME=ssh:TARGET`. Throws ConfigError. */
export function parseHost(text: string): SshHost {
  const [, name = "", target = ""] = /^([^=]*)=ssh:(.*)$/s.exec(text) ?? [];
  if (name === "") throw new ConfigError(`--host is "${text}": must be NAME=ssh:TARGET, as in gpu=ssh:me@gpu.example.`);
  checkHostName(name);
  const problem = targetProblem(target);
  if (problem !== undefined) {
    const advice = "Use a host, user@host, ssh://user@host:port or a Host of ~/.ssh/config.";
    throw new ConfigError(`--host ${name}: ${problem} ${advice}`);
  }
  return { name, target };
}

/** Throws ConfigError. */
export function checkHostName(name: string): void {
  if (NAME.test(name)) return;
  throw new ConfigError(
    `--host: the name "${name}" must have 1 to 18 letters, digits, - and _, the first and last not - or _.`,
  );
}

/** Returns the name of an entry in a client's file; without `host`, of the server on this machine. */
export function entryName(host?: string): string {
  return host === undefined ? PRODUCT : `${PRODUCT}-${host}`;
}

/** Returns the host of an entry by the name of the entry; `undefined` for all others. */
export function hostOfEntry(name: string): string | undefined {
  return name.startsWith(`${PRODUCT}-`) ? name.slice(PRODUCT.length + 1) : undefined;
}

/**
 * Options that override the user's configuration of the host. Nobody can answer a question of `ssh`. A connection that has died
 * ends within a minute. `RemoteCommand` and forwarded ports are for terminals, and a forwarded agent would give sessions there
 * the keys of this machine. A connection of the user may be shared, but does not depend on this one.
 */
const OPTIONS: Readonly<Record<string, string>> = {
  BatchMode: "yes",
  ConnectTimeout: "15",
  ServerAliveInterval: "15",
  ForwardAgent: "no",
  ClearAllForwardings: "yes",
  ControlMaster: "no",
  RemoteCommand: "none",
};

/** Arguments of `ssh` before the destination. */
export const SSH_OPTIONS: readonly string[] = [
  "-T",
  ...Object.entries(OPTIONS).flatMap(([name, value]) => ["-o", `${name}=${value}`]),
];

/** Returns the arguments of `ssh` that run `words` at `target`, whose login shell reads them. */
export function sshArgs(target: string, words: readonly string[]): string[] {
  return [...SSH_OPTIONS, target, ...words.map(shellWord)];
}

/** Quotes a word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Call of `ssh` in an entry, perhaps written by hand. */
export interface SshCall {
  /** Arguments up to the destination. */
  readonly before: readonly string[];
  readonly target: string;
  /** Command there, quotes removed. */
  readonly words: readonly string[];
}

/** Flags of OpenSSH with a value. */
const WITH_VALUE = /^-[^-]*[BbcDEeFIiJLlmOoPpQRSWw]$/;

/** Reads arguments of `ssh`; `undefined` without a destination. */
export function readSshArgs(args: readonly string[]): SshCall | undefined {
  let at = 0;
  while (args[at]?.startsWith("-") === true && args[at] !== "--") at += WITH_VALUE.test(args[at] ?? "") ? 2 : 1;
  if (args[at] === "--") at += 1;
  const target = args[at];
  if (target === undefined || target.startsWith("-")) return undefined;
  return { before: args.slice(0, at), target, words: shellWords(args.slice(at + 1).join(" ")) };
}

/** Splits a command line as a POSIX shell does, without expansions. */
function shellWords(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs,
      (_, single?: string, double?: string, one?: string) =>
        single ?? double?.replaceAll(/\\(["$\\`])/g, "$1") ?? one ?? "",
    ),
  );
}
