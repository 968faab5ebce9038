import { readPowerShell } from "./powershell.ts";
import { readCommand } from "./read.ts";
import type { CommandReading, ShellCommand } from "./shell-command.ts";

/**
 * Rules for shell commands. An allow rule is read narrowly: one simple command. A deny or ask rule is read widely, and a
 * command that cannot be parsed needs approval. Deny and ask rules are a reminder, not a barrier: a program can run another one
 * invisibly.
 */

/** Texts of the rules for a shell, by behavior. */
export interface CommandRules {
  readonly allow?: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

export type CommandVerdict =
  | { readonly behavior: "ask" | "deny"; readonly content: string }
  /** No rule matches, but the command runs something unknown. */
  | { readonly behavior: "unreadable"; readonly problem: string };

/** Returns the verdict of deny and ask rules on a command; `undefined` if no rule speaks of the command. */
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
      const meant = matchReading(content, command, reading);
      if (meant === "yes") return { behavior, content };
      if (meant === "maybe") unreadable ??= unreadableFor("a rule depends on words that are not written out");
    }
  }
  return unreadable;
}

function unreadableFor(problem: string | undefined): CommandVerdict | undefined {
  return problem === undefined ? undefined : { behavior: "unreadable", problem };
}

/** True if the rule speaks of the command, or of any command inside. */
export function matchesCommand(content: string, command: string, isBash: boolean): boolean {
  return matchReading(content, command, isBash ? readCommand(command) : readPowerShell(command)) === "yes";
}

function matchReading(content: string, command: string, { commands }: CommandReading): "yes" | "no" | "maybe" {
  if (findCommands(command).some((each) => matchesText(content, each))) return "yes";
  const says = commands.map((each) => matchCommand(content, each));
  return says.includes("yes") ? "yes" : says.includes("maybe") ? "maybe" : "no";
}

/** Returns "maybe" if a word that is not written out could be the word in the rule. */
function matchCommand(content: string, command: ShellCommand): "yes" | "no" | "maybe" {
  const end = command.indexOf(undefined);
  const words = end === -1 ? command : command.slice(0, end);
  if (end === -1) return matchesText(content, words.join(" ")) ? "yes" : "no";
  // Fits for any unknown word, as `rm:*` does.
  if (end > 0 && matchesText(content, `${words.join(" ")} \u0000`)) return "yes";
  const program = /^[^\s*:]*/.exec(content)?.[0] ?? "";
  return program === "" || words[0] === undefined || words[0].startsWith(program) ? "maybe" : "no";
}

/** True if the rule allows the command: one simple command, without anything by which a shell would run another. */
export function allowsCommand(content: string, command: string, isBash: boolean): boolean {
  const text = withoutBlanks(command);
  if (isExactly(content, command)) return true;
  return isSimple(text, isBash) && matchesText(content, text);
}

/** True if the rule is exactly this command: the rule's author has read the command. */
export function isExactly(content: string, command: string): boolean {
  return !content.includes("*") && content.trim() === withoutBlanks(command);
}

const BLANKS = " \t\n";

/**
 * Cuts off blanks that a shell skips. Other white space belongs to a word: behind a no-break space, `/usr/bin/make` is a file
 * below the current folder.
 */
function withoutBlanks(command: string): string {
  let [start, end] = [0, command.length];
  while (start < end && BLANKS.includes(command.charAt(start))) start += 1;
  while (end > start && BLANKS.includes(command.charAt(end - 1))) end -= 1;
  return command.slice(start, end);
}

/** Matches `git log:*` as these words and anything behind, `*` as any text, and everything else literally. */
function matchesText(content: string, command: string): boolean {
  if (content.endsWith(":*")) return isPrefix(content.slice(0, -2), command);
  if (!content.includes("*")) return command === content.trim();
  // `ls *` also fits `ls`, as in Claude Code.
  const isOnly = content.indexOf("*") === content.length - 1;
  if (isOnly && content.endsWith(" *") && command === content.slice(0, -2)) return true;
  return matchesGlob(content, command);
}

function isPrefix(prefix: string, command: string): boolean {
  return command === prefix || command.startsWith(`${prefix} `) || command.startsWith(`${prefix}\t`);
}

/** Matches the parts between stars in order, each as early as possible, in a single pass. */
export function matchesGlob(pattern: string, text: string): boolean {
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

/** Refused inside quotes, too: a quote behind a `#` does not quote. */
const LINE_BREAK = /[\n\r\0]/;
/** Characters with an effect between double quotes, such as a `$` before a bracket. */
const SUBSTITUTION = /`|\$[({['"]/;
const OPERATOR = /[;&|<>()]/;

function isSimple(text: string, isBash: boolean): boolean {
  if (text === "" || LINE_BREAK.test(text)) return false;
  // Other shells quote differently, so quotes protect nothing here.
  if (!isBash) return !SUBSTITUTION.test(text) && !OPERATOR.test(text) && !/[{}^%]/.test(text);
  const bare = withoutQuoted(text);
  return bare !== undefined && !SUBSTITUTION.test(bare.open) && !OPERATOR.test(bare.bare);
}

/**
 * Returns `open`, the text without parts in single quotes, and `bare`, also without parts in double quotes or behind a
 * backslash. `undefined` if a quote is not closed.
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
      // Keeps the quote: `$'...'` has rules of its own, and is recognized by the dollar before the quote.
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

/** Maximum characters of a text to take apart; the rest counts only in the whole text. */
const MAX_PARSED_CHARS = 20_000;

/**
 * Returns every text that could be a command: in quotes, behind operators, inside substitutions, behind programs in
 * `RUNS_OTHERS`.
 */
function findCommands(command: string): string[] {
  const found = new Set([command.trim()]);
  for (const part of command.slice(0, MAX_PARSED_CHARS).split(/[;&|\n\r()`{}<>]/)) {
    for (const spelling of [part, part.replaceAll(/["'\\]/g, "")]) {
      const words = spelling.trim().split(/\s+/);
      for (const each of expandCommand(words)) found.add(each);
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

/** Returns the command as written and by the bare name of its program, and all commands it could run in turn. */
function expandCommand(words: readonly string[]): string[] {
  const start = words.findIndex((word) => !ASSIGNMENT.test(word) && !KEYWORD.test(word));
  if (start === -1) return [words.join(" ")];
  const [program = "", ...rest] = words.slice(start);
  const name = program.slice(program.lastIndexOf("/") + 1);
  const own = [words.join(" "), [program, ...rest].join(" "), [name, ...rest].join(" ")];
  if (!RUNS_OTHERS.has(name)) return own;
  return [...own, ...rest.slice(0, 20).map((_, index) => rest.slice(index).join(" "))];
}
