import { forEachChild, parse, type Command, type PipelineNode, type SyntaxNode, type Word } from "unbash";
import { readPowerShell } from "./powershell.ts";
import { whyUnparsed, writtenWord } from "./read.ts";
import { resolveCommand } from "./resolve.ts";
import type { ShellCommand } from "./shell-command.ts";

/**
 * Reads a command line for its exit code. Nothing is allowed by this reading: a command that looks plain may be an alias or a
 * function of the user's shell.
 */

/**
 * Meaning of the exit code of a command line.
 *
 * - `plain`: exit code of its only command, or, after `cd FOLDER &&`, of the last one unless `cd` has failed.
 * - `and`: commands joined by `&&`: 0 only if each has returned 0.
 * - `filtered`: one command whose output goes through `head` or `tail`: exit code of the filter.
 * - `other`: anything else, such as `|| true`, `; echo`, `&`, another pipe.
 */
export type LineForm = "plain" | "and" | "filtered" | "other";

export interface CommandLine {
  readonly form: LineForm;
  /** Commands in order, each without `cd FOLDER &&`, filters, and programs that only pass on the exit code (`env`, `time`). */
  readonly commands: readonly ShellCommand[];
  /** True after `cd FOLDER &&`. */
  readonly moves: boolean;
  /** True if a program in the line ends commands by time (`timeout 60 npm test`). */
  readonly timed: boolean;
}

const UNREADABLE: CommandLine = { form: "other", commands: [], moves: false, timed: false };

export function readCommandLine(text: string, shell: "bash" | "powershell"): CommandLine {
  if (shell === "powershell") return readPowerShellLine(text);
  if (whyUnparsed(text) !== undefined) return UNREADABLE;
  try {
    const script = parse(text);
    return (script.errors ?? []).length > 0 ? UNREADABLE : readScript(script);
  } catch {
    return UNREADABLE;
  }
}

function readPowerShellLine(text: string): CommandLine {
  const [command] = readPowerShell(text).commands;
  return command ? { ...UNREADABLE, form: "plain", commands: [command] } : UNREADABLE;
}

function readScript(script: ReturnType<typeof parse>): CommandLine {
  const [statement, ...more] = script.commands;
  const isOne = statement && more.length === 0 && statement.background !== true;
  return (isOne ? readList(statement.command) : undefined) ?? lineOf("other", commandsIn(script));
}

type Node = PipelineNode | { readonly type: "AndOr" };
type AndOr = Extract<SyntaxNode, { type: "AndOr" }>;

/** Returns `undefined` for a list in none of the read forms. */
function readList(node: PipelineNode | AndOr): CommandLine | undefined {
  const nodes: readonly PipelineNode[] = node.type === "AndOr" ? node.commands : [node];
  if (node.type === "AndOr" && node.operators.some((operator) => operator !== "&&")) return undefined;
  const moves = nodes.length > 1 && isMove(nodes[0]);
  const rest = moves ? nodes.slice(1) : nodes;
  const [only] = rest;
  const filtered = only && rest.length === 1 ? filteredCommand(only) : undefined;
  if (filtered) return { ...lineOf("filtered", [filtered]), moves };
  const commands = rest.map(plainCommand);
  if (!commands.every((command) => command !== undefined)) return undefined;
  return { ...lineOf(commands.length === 1 ? "plain" : "and", commands), moves };
}

function lineOf(form: LineForm, commands: readonly Command[]): CommandLine {
  const words = commands.map(wordsOf);
  return { form, commands: words.map(withoutPassers), moves: false, timed: words.some(isTimed) };
}

/** Accepts `cd FOLDER` without redirections, so that a failure of `cd` is seen in the output. */
function isMove(node: Node | undefined): boolean {
  if (node?.type !== "Command" || node.redirects.length > 0) return false;
  const words = wordsOf(node);
  return words.length === 2 && words[0] === "cd";
}

/** Returns a simple command with a name, also behind `time`. An assignment alone has the exit code of its substitution. */
function plainCommand(node: PipelineNode): Command | undefined {
  if (node.type === "Command") return node.name ? node : undefined;
  if (node.type !== "Pipeline" || node.prefixes.some(({ type }) => type === "Negation")) return undefined;
  const [only, ...others] = node.commands;
  return only?.type === "Command" && only.name && others.length === 0 ? only : undefined;
}

/** Returns the first command of a pipe through `head` and `tail`, which cannot add text. */
function filteredCommand(node: PipelineNode): Command | undefined {
  if (node.type !== "Pipeline" || node.prefixes.length > 0) return undefined;
  const [first, ...filters] = node.commands;
  const areFilters = filters.length > 0 && filters.every((each) => each.type === "Command" && isFilter(each));
  return first?.type === "Command" && first.name && areFilters ? first : undefined;
}

function isFilter(command: Command): boolean {
  const [program, ...args] = wordsOf(command);
  if (program !== "head" && program !== "tail") return false;
  return (
    command.redirects.length === 0 &&
    args.every((word) => /^(?:-[nc]?[-+]?\d*|--lines=[-+]?\d+)$|^\d+$/.test(word ?? "f"))
  );
}

/** Returns the simple commands of a tree, without those in words: a substitution gives its output, not its exit code. */
function commandsIn(script: SyntaxNode): Command[] {
  const found: Command[] = [];
  const look = (node: SyntaxNode): void => {
    if (node.type === "Word" || node.type === "Assignment") return;
    if (node.type === "Command") {
      if (node.name) found.push(node);
    } else forEachChild(node, look);
  };
  look(script);
  return found;
}

function wordsOf({ name, suffix }: Command): ShellCommand {
  const words = suffix.filter((each): each is Word => each.type === "Word");
  return name ? [name, ...words].map(writtenWord) : [];
}

/** Programs that run one command and return its exit code. */
const PASSERS: ReadonlySet<string | undefined> = new Set(
  "builtin command env ionice nice nohup stdbuf sudo time timeout".split(" "),
);

function withoutPassers(words: ShellCommand): ShellCommand {
  const { commands } = resolveCommand(words);
  const at = commands.findIndex(([program]) => !PASSERS.has(program));
  // The resolved name is in lower case, and a name such as `./gradlew` has none.
  return at <= 0 ? words : (commands[at] ?? words);
}

function isTimed(words: ShellCommand): boolean {
  return resolveCommand(words).commands.some(([program]) => program === "timeout");
}
