import { forEachChild, parse, type Assignment, type Command, type SyntaxNode, type Word, type WordPart } from "unbash";
import { resolveCommand } from "./resolve.ts";
import {
  isHarmlessVariable,
  isOwnVariable,
  type CommandReading,
  type ShellCommand,
  type ShellWord,
} from "./shell-command.ts";
/**
 * Reads the commands of a text for Bash. A library parses; this module decides which syntax trees can be read: only listed node
 * types. A text that another shell (zsh) would read differently is not readable either.
 */

/** Maximum length of a text, characters. */
const MAX_LENGTH = 20_000;
/** Maximum nesting of words and commands. */
const MAX_DEPTH = 200;

export function readCommand(text: string): CommandReading {
  const problem = whyUnparsed(text);
  if (problem !== undefined) return { commands: [], problem };
  try {
    return new Reader().read(parse(text));
  } catch {
    return { commands: [], problem: "it cannot be parsed" };
  }
}

/** Returns the reason, a clause, why a text is not given to the parser at all. */
export function whyUnparsed(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `it is longer than ${String(MAX_LENGTH)} characters`;
  return CONTROL.test(text) ? "it has control characters" : undefined;
}

/** Control characters but tabs and line breaks. A carriage return is an invisible character of a word. */
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;

/** Lists and loops, read through because their commands stand inside. */
const CONTAINER_NODES: ReadonlySet<SyntaxNode["type"]> = new Set([
  "AndOr",
  "Assignment",
  "BraceGroup",
  "Case",
  "CaseItem",
  "CompoundList",
  "Elif",
  "FileDescriptor",
  "For",
  "HereDoc",
  "HereDocBody",
  "HereDocDelimiter",
  "HereString",
  "If",
  "Negation",
  "Redirect",
  "Redirected",
  "Pipeline",
  "Statement",
  "Subshell",
  "Time",
  "While",
] as const);

class Reader {
  readonly #commands: ShellCommand[] = [];
  #problem: string | undefined;
  #depth = 0;

  read(script: SyntaxNode): CommandReading {
    this.#look(script);
    return { commands: this.#commands, problem: this.#problem };
  }

  #fail(problem: string): void {
    this.#problem ??= problem;
  }

  #look(node: SyntaxNode): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) this.#fail("it is nested too deeply");
    else this.#visit(node);
    this.#depth -= 1;
  }

  #visit(node: SyntaxNode): void {
    if (node.type === "Command") this.#command(node);
    else if (node.type === "Word") this.#wordOf(node);
    else if (isPart(node)) this.#part(node);
    else if (node.type !== "Script" && !CONTAINER_NODES.has(node.type)) this.#fail(`it has ${describeNode(node.type)}`);
    else this.#pass(node);
  }

  #pass(node: SyntaxNode): void {
    if (node.type === "Script" && node.errors && node.errors.length > 0) this.#fail("it cannot be parsed");
    if (node.type === "HereDoc" && !node.closing) this.#fail("a here-document has no end");
    if (node.type === "For" && !isOwnVariable(node.name.value))
      this.#fail("a loop sets a variable that other programs may read");
    forEachChild(node, (child) => this.#look(child));
  }

  #command({ name, prefix, redirects, suffix }: Command): void {
    for (const redirect of redirects) this.#look(redirect);
    const set = [...prefix, ...suffix].filter((each) => each.type === "Assignment");
    for (const assignment of set) this.#assignment(assignment, name === undefined);
    if (!name) return;
    const words = [name, ...suffix.filter((each) => each.type === "Word")].map((word) => this.#wordOf(word));
    const { commands, problem } = resolveCommand(words);
    this.#commands.push(...commands);
    if (problem !== undefined) this.#fail(problem);
  }

  /**
   * Many variables name a program, or change its meaning. Before a command only harmless names are accepted; alone, also new
   * names.
   */
  #assignment({ index, name, value }: Assignment, isAlone: boolean): void {
    const isKnown = (isAlone && isOwnVariable(name)) || isHarmlessVariable(name);
    if (index || value.type === "ArrayValue" || !isKnown)
      return this.#fail(`it sets the variable ${name.slice(0, 50)}`);
    this.#wordOf(value);
  }

  #wordOf(word: Word): ShellWord {
    for (const part of word.parts ?? []) this.#part(part);
    return writtenWord(word);
  }

  #part(part: WordPart): void {
    const { type } = part;
    if (type === "CommandExpansion" || type === "ProcessSubstitution") {
      if (part.script) this.#look(part.script);
      else this.#fail("it has a substitution that cannot be parsed");
    } else if (type === "ParameterExpansion") {
      if (part.prefix ?? part.index ?? part.operation) this.#fail("it has an expansion with an operator");
    } else if (type === "ArithmeticExpansion") {
      if (!/^\$\(\([\d\s+*/%()-]*\)\)$/.test(part.text)) this.#fail("it has arithmetic with variables");
    } else if (type === "LocaleString" || type === "ExtendedGlob") {
      this.#fail(`it has ${describeNode(type)}`);
    } else if ("parts" in part) {
      for (const child of part.parts ?? []) this.#part(child);
    }
  }
}

const PARTS: ReadonlySet<SyntaxNode["type"]> = new Set([
  "AnsiCQuoted",
  "ArithmeticExpansion",
  "BraceExpansion",
  "CommandExpansion",
  "DoubleQuoted",
  "ExtendedGlob",
  "Glob",
  "Literal",
  "LocaleString",
  "ParameterExpansion",
  "ProcessSubstitution",
  "SimpleExpansion",
  "SingleQuoted",
] as const);

function isPart(node: SyntaxNode): node is WordPart {
  return PARTS.has(node.type);
}

/** Returns the word without quotes if it is written out. */
export function writtenWord({ parts, value }: Word): ShellWord {
  return parts?.every((part) => isLiteral(part)) === false ? undefined : value;
}

/** False for `$'...'`, which could be read, but plain commands do not need it. */
function isLiteral(part: WordPart): boolean {
  if (part.type === "DoubleQuoted") return part.parts.every(({ type }) => type === "Literal");
  return part.type === "Literal" || part.type === "SingleQuoted";
}

/** Turns `ProcessSubstitution` into "a process substitution". */
function describeNode(type: string): string {
  const words = type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}
