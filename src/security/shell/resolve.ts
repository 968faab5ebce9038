import { isHarmlessVariable, type CommandReading, type ShellCommand, type ShellWord } from "./shell-command.ts";
import { hasPlainForm, isRunner } from "./runners.ts";

/** Resolves one simple command: its program by the bare name, and the commands that the program runs in turn. */

/** Maximum number of programs that run one another: reading thousands would take seconds. */
const MAX_DEPTH = 20;

export function resolveCommand(words: ShellCommand, depth = 0): CommandReading {
  if (depth > MAX_DEPTH) return opaque(words.slice(0, 1), "too many programs in it run one another");
  const [written, ...args] = words;
  if (written === undefined) return opaque(words, "the name of a program in it is not written out");
  const name = bareName(written);
  if (name === undefined) return opaque(words, `${written.slice(0, 50)} is not a plain program name`);
  const own: ShellCommand = [name, ...args];
  if (name === "git") return resolveGit(own, args);
  const inner = WRAPPERS.get(name)?.(args);
  if (inner !== undefined)
    return inner === "none" ? { commands: [own] } : withInner(own, resolveCommand(inner, depth + 1));
  if (name === "find") return resolveFind(own, args, depth);
  const isPlain = WRAPPERS.has(name) ? false : (hasPlainForm(name, args) ?? !isRunner(name));
  return isPlain ? { commands: [own] } : opaque(own, `${name} can run another command in this form`);
}

function opaque(command: ShellCommand, problem: string): CommandReading {
  return { commands: [command], problem };
}

function withInner(own: ShellCommand, { commands, problem }: CommandReading): CommandReading {
  return { commands: [own, ...commands], problem };
}

const SYSTEM_FOLDER = /^\/(?:usr\/(?:local\/)?)?s?bin\//;

/** Returns the plain name of a system program, otherwise `undefined`. Folds case, because some file systems ignore case. */
function bareName(written: string): string | undefined {
  if (written === "[" || written === ":") return written;
  const name = written.replace(SYSTEM_FOLDER, "").toLowerCase();
  return /^[a-z0-9_][\w.+-]*$/.test(name) ? name.replace(/\.(?:bat|cmd|com|exe)$/, "") : undefined;
}

/** Returns the command behind the program and its options; "none" if nothing is run, `undefined` if unknown. */
type Wrapper = (args: ShellCommand) => ShellCommand | "none" | undefined;

/** Skips options (`flags` alone, `valued` with the next word) and then `more` words before the command. */
function wrapper(flags: RegExp, valued?: RegExp, more = 0): Wrapper {
  return (args) => {
    let at = 0;
    for (; args[at]?.startsWith("-"); at += 1) {
      const option = args[at] ?? "";
      if (valued?.test(option)) at += 1;
      else if (!flags.test(option)) return undefined;
    }
    const skipped = args.slice(at, at + more);
    if (skipped.some((word) => word === undefined || !/^[\w.:/-]+$/.test(word))) return undefined;
    return args.length > at + more ? args.slice(at + more) : undefined;
  };
}

const NO_OPTION = /^(?!)/;

function unwrapEnv(args: ShellCommand): ShellCommand | "none" | undefined {
  const start = args.findIndex((word) => word === undefined || !/^\w+=/.test(word));
  const set = start === -1 ? args : args.slice(0, start);
  if (set.some((word) => !isHarmlessVariable(word?.split("=")[0] ?? ""))) return undefined;
  if (start === -1) return "none";
  return args[start]?.startsWith("-") ? undefined : args.slice(start);
}

/** Adds an unknown word at the end, where xargs puts the words from its input. */
function unwrapXargs(args: ShellCommand): ShellCommand | "none" | undefined {
  const flags = /^(?:-[0rt]+|-[nPL]\d+|-I\{\}|--null|--no-run-if-empty|--max-(?:args|procs)=\d+)$/;
  const at = args.findIndex((word, index) => !isOptionOf(word, args[index - 1]));
  function isOptionOf(word: ShellWord, before: ShellWord): boolean {
    if (word === undefined) return false;
    if (flags.test(word) || /^-[nPLI]$/.test(word)) return true;
    return (/^-[nPL]$/.test(before ?? "") && /^\d+$/.test(word)) || (before === "-I" && word === "{}");
  }
  if (at === -1) return "none";
  return args[at]?.startsWith("-") ? undefined : [...args.slice(at).map(unlessPlaceholder), undefined];
}

function unlessPlaceholder(word: ShellWord): ShellWord {
  return word?.includes("{}") ? undefined : word;
}

/** `command -v x` looks x up and runs nothing. */
function unwrapCommand(args: ShellCommand): ShellCommand | "none" | undefined {
  if (args[0] === "-v" || args[0] === "-V") return "none";
  return args[0] === undefined || args[0].startsWith("-") ? undefined : args;
}

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map([
  ["builtin", wrapper(NO_OPTION)],
  ["command", unwrapCommand],
  ["env", unwrapEnv],
  ["ionice", wrapper(/^-(?:[cn]\d|t)$/, /^-[cn]$/)],
  ["nice", wrapper(/^(?:-\d+|-n-?\d+|--adjustment=-?\d+)$/, /^-n$/)],
  ["nohup", wrapper(NO_OPTION)],
  ["setsid", wrapper(/^-[cfw]+$/)],
  ["stdbuf", wrapper(/^-[ieo][L0-9KMB]+$/)],
  ["sudo", wrapper(/^-[EHnk]+$/, /^-[ug]$/)],
  ["time", wrapper(/^-[pv]+$/)],
  ["timeout", wrapper(/^(?:--preserve-status|--foreground|--(?:signal|kill-after)=\w+|-v)$/, /^-[ks]$/, 1)],
  ["xargs", unwrapXargs],
]);

const EXECUTES = /^-(?:exec|ok)(?:dir)?$/;

function resolveFind(own: ShellCommand, args: ShellCommand, depth: number): CommandReading {
  const commands: ShellCommand[] = [own];
  let problem: string | undefined;
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    // A word that is not written out can be an option, too.
    if (word === undefined) problem ??= "find has words that are not written out";
    if (word === undefined || !EXECUTES.test(word)) continue;
    const end = args.findIndex((each, index) => index > at && (each === ";" || each === "+"));
    const inner = resolveCommand(args.slice(at + 1, end === -1 ? undefined : end).map(unlessPlaceholder), depth + 1);
    commands.push(...inner.commands);
    problem ??= inner.problem;
    if (end === -1) break;
    at = end;
  }
  return { commands, problem };
}

/**
 * Accepts options before the subcommand if they run no program. Returns the command also without these options, for rules to
 * match.
 */
function resolveGit(own: ShellCommand, args: ShellCommand): CommandReading {
  let at = 0;
  for (; args[at]?.startsWith("-"); at += 1) {
    if (args[at] === "-C") at += 1;
    else if (!/^(?:-P|--no-pager|--no-optional-locks|--literal-pathspecs|--version|--help)$/.test(args[at] ?? ""))
      return opaque(own, `git ${args[at]?.slice(0, 50) ?? ""} can run another command`);
  }
  const rest = args.slice(at);
  const commands: ShellCommand[] = at === 0 ? [own] : [own, ["git", ...rest]];
  if (args.length === 0 || (rest.length === 0 && at > 0)) return { commands };
  const isPlain = hasPlainForm("git", rest) ?? false;
  return isPlain ? { commands } : { commands, problem: "git can run another command in this form" };
}
