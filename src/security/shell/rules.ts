import { readPowerShell } from "./powershell.ts";
import { readCommand } from "./read.ts";
import type { Reading, ShellCommand } from "./words.ts";

/**
 * Rules for shell commands. An allow rule is read narrowly: one simple command. A rule that denies or asks is read widely, and a
 * command that cannot be parsed needs approval. Such rules are a reminder, not a barrier: a program can run another one invisibly.
 */

/** The texts of rules for a shell, each by what it does. */
export interface CommandRules {
  readonly allow?: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

export type CommandVerdict =
  | { readonly behavior: "ask" | "deny"; readonly content: string }
  /** No rule matches, but what the command runs is unknown. */
  | { readonly behavior: "unreadable"; readonly problem: string };

/** What rules that deny or ask say of a command; undefined where they say nothing. */
export function judgeCommand(
  rules: Pick<CommandRules, "ask" | "deny">,
  command: string,
  isBash: boolean,
): CommandVerdict | undefined {
  if (rules.ask.length + rules.deny.length === 0) return undefined;
  const reading = isBash ? readCommand(command) : readPowerShell(command);
  let unreadable: CommandVerdict | undefined = unreadableFor(reading.problem);
  for (const behavior of ["deny", "ask"] as const) {
    for (const content of rules[behavior]) {
      const meant = speaksOf(content, command, reading);
      if (meant === "yes") return { behavior, content };
      if (meant === "maybe") unreadable ??= unreadableFor("words are not written out on which a rule depends");
    }
  }
  return unreadable;
}

function unreadableFor(problem: string | undefined): CommandVerdict | undefined {
  return problem === undefined ? undefined : { behavior: "unreadable", problem };
}

/** Whether the rule speaks of the command, or of any command in it. */
export function speaksOfCommand(content: string, command: string, isBash: boolean): boolean {
  return speaksOf(content, command, isBash ? readCommand(command) : readPowerShell(command)) === "yes";
}

function speaksOf(content: string, command: string, { commands }: Reading): "yes" | "no" | "maybe" {
  if (commandsIn(command).some((each) => fits(content, each))) return "yes";
  const says = commands.map((each) => speaksOfRead(content, each));
  return says.includes("yes") ? "yes" : says.includes("maybe") ? "maybe" : "no";
}

/** A word that is not written out may be the one that the rule names. */
function speaksOfRead(content: string, command: ShellCommand): "yes" | "no" | "maybe" {
  const end = command.indexOf(undefined);
  const words = end === -1 ? command : command.slice(0, end);
  if (end === -1) return fits(content, words.join(" ")) ? "yes" : "no";
  // What fits whatever stands there: `rm:*`.
  if (end > 0 && fits(content, `${words.join(" ")} \u0000`)) return "yes";
  const program = /^[^\s*:]*/.exec(content)?.[0] ?? "";
  return program === "" || words[0] === undefined || words[0].startsWith(program) ? "maybe" : "no";
}

/** Whether the rule allows the command: one simple command, without anything by which a shell would run another. */
export function allowsCommand(content: string, command: string, isBash: boolean): boolean {
  const text = command.trim();
  if (isExactly(content, command)) return true;
  return isSimple(text, isBash) && fits(content, text);
}

/** The rule is exactly this command, so its author has read it. */
export function isExactly(content: string, command: string): boolean {
  return !content.includes("*") && content.trim() === command.trim();
}
/** `git log:*` is that word for word and anything behind it, * is any text, everything else is as it stands. */
function fits(content: string, command: string): boolean {
  if (content.endsWith(":*")) return isPrefix(content.slice(0, -2), command);
  if (!content.includes("*")) return command === content.trim();
  // `ls *` is `ls` too, as Claude Code has it.
  const isOnly = content.indexOf("*") === content.length - 1;
  if (isOnly && content.endsWith(" *") && command === content.slice(0, -2)) return true;
  return fitsGlob(content, command);
}

function isPrefix(prefix: string, command: string): boolean {
  return command === prefix || command.startsWith(`${prefix} `) || command.startsWith(`${prefix}\t`);
}

/** Parts between stars in their order, each as early as can be: no more than one pass. */
export function fitsGlob(pattern: string, text: string): boolean {
  const parts = pattern.split("*");
  const [first = "", last = ""] = [parts[0], parts.at(-1)];
  if (parts.length === 1) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Never inside quotes either: a quote behind a # is none. */
const LINE_BREAK = /[\n\r\0]/;
/** Between double quotes these still do something, so does a $ before a bracket. */
const SUBSTITUTION = /`|\$[({['"]/;
const OPERATOR = /[;&|<>()]/;

function isSimple(text: string, isBash: boolean): boolean {
  if (text === "" || LINE_BREAK.test(text)) return false;
  // Other shells quote otherwise.
  if (!isBash) return !SUBSTITUTION.test(text) && !OPERATOR.test(text) && !/[{}^%]/.test(text);
  const bare = withoutQuoted(text);
  return bare !== undefined && !SUBSTITUTION.test(bare.open) && !OPERATOR.test(bare.bare);
}

/**
 * `open` is the text without what stands in single quotes, `bare` also without what stands in double quotes or behind a
 * backslash. Undefined where a quote is not closed.
 */
function withoutQuoted(text: string): { open: string; bare: string } | undefined {
  let [open, bare] = ["", ""];
  let inDouble = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "\\") {
      at += 1;
    } else if (char === '"') {
      inDouble = !inDouble;
      open += char;
    } else if (char === "'" && !inDouble) {
      // $'...' has rules of its own: the dollar is seen beside its quote.
      open += char;
      at = text.indexOf("'", at + 1);
      if (at === -1) return undefined;
    } else {
      open += char;
      if (!inDouble) bare += char;
    }
  }
  return inDouble ? undefined : { open, bare };
}

/** Of a longer text the beginning is taken apart, characters; the rest counts as one command. */
const MAX_PARSED_CHARS = 20_000;

/** All that could be a command in it: in quotes, behind operators, inside substitutions, behind programs that run others. */
function commandsIn(command: string): string[] {
  const found = new Set([command.trim()]);
  for (const part of command.slice(0, MAX_PARSED_CHARS).split(/[;&|\n\r()`{}<>]/)) {
    for (const spelling of [part, part.replaceAll(/["'\\]/g, "")]) {
      const words = spelling.trim().split(/\s+/);
      for (const each of commandsOf(words)) found.add(each);
    }
  }
  found.delete("");
  return [...found];
}

const ASSIGNMENT = /^\w+\+?=/;
const KEYWORD = /^(?:if|then|else|elif|while|until|do|!)$/;
const RUNS_OTHERS: ReadonlySet<string> = new Set(
  "bash dash fish ksh sh zsh builtin command eval exec env nohup setsid stdbuf time timeout watch doas find ionice nice parallel sudo xargs".split(
    " ",
  ),
);

/** The command of these words as it stands, by the bare name of its program, and what it would run in its turn. */
function commandsOf(words: readonly string[]): string[] {
  const start = words.findIndex((word) => !ASSIGNMENT.test(word) && !KEYWORD.test(word));
  if (start === -1) return [words.join(" ")];
  const [program = "", ...rest] = words.slice(start);
  const name = program.slice(program.lastIndexOf("/") + 1);
  const own = [words.join(" "), [program, ...rest].join(" "), [name, ...rest].join(" ")];
  if (!RUNS_OTHERS.has(name)) return own;
  return [...own, ...rest.slice(0, 20).map((_, index) => rest.slice(index).join(" "))];
}
