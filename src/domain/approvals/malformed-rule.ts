/**
 * Finds rules that Claude Code refuses. From a settings file Claude Code drops such a rule and reports the rule. The command
 * line, which carries the rules of a session, has traps: a bad rule is dropped silently, and an unclosed rule takes the rules
 * behind along.
 */

/** `tools` is a list of tool names, in which `*` means every tool. */
export type RuleUse = "allow" | "deny" | "tools";

/** Returns the problem of the rule and the correct form, or `undefined` for a rule that Claude Code accepts. */
export function malformedRule(text: string, use: RuleUse): string | undefined {
  const call = splitRule(text);
  const problem = typeof call === "string" ? call : findProblem(call, use);
  return problem && `the rule ${shortened(text)} ${problem}`;
}

/** Returns the problem of a rule given in two parts, so that brackets in `content` are not parsed. */
export function malformedParts(name: string, content: string | undefined, use: RuleUse): string | undefined {
  const problem = findProblem({ name, content }, use);
  return problem && `the rule for ${shortened(name)} ${problem}`;
}

function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

/**
 * True if Claude Code splits the rule: it divides the command line at commas and spaces, and takes each `)` for the end of a
 * rule's content.
 */
export function isSplitByClaude(rule: string): boolean {
  return /\)[^]*[ ,]/.test(rule);
}

interface RuleParts {
  readonly name: string;
  /** `undefined` without brackets. */
  readonly content: string | undefined;
}

const RULE_FORMS = "Write Tool or Tool(content), such as Read, Bash(ls:*) or Edit(src/**).";

/** Splits at the first and the last bracket: brackets in between belong to the content. */
function splitRule(text: string): RuleParts | string {
  const [open, close] = [unescaped(text, "(")[0], unescaped(text, ")").at(-1)];
  if (open === undefined && close === undefined) return { name: text, content: undefined };
  if (open === undefined || close === undefined) return `has a bracket without its other half. ${RULE_FORMS}`;
  if (close < open) return `has its brackets the wrong way round. ${RULE_FORMS}`;
  if (close !== text.length - 1) return `has text behind its last bracket. ${RULE_FORMS}`;
  return { name: text.slice(0, open), content: text.slice(open + 1, close) };
}

/** Returns the positions of `character` that are not escaped by a backslash. */
function unescaped(text: string, character: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) {
    let start = at;
    while (text[start - 1] === "\\") start -= 1;
    if ((at - start) % 2 === 0) found.push(at);
  }
  return found;
}

function findProblem({ content, name }: RuleParts, use: RuleUse): string | undefined {
  if (!/^[\w*][\w*.:/@-]*$/.test(name)) return `has no valid tool name. ${RULE_FORMS}`;
  if (use === "allow" && name.includes("*") && !/^mcp__[^*]+?__/.test(name)) {
    return "would allow tools by a * that is not behind the name of an MCP server. Name the tools, or write mcp__github__*.";
  }
  if (content === undefined) return undefined;
  if (content.trim() === "") return `has nothing in its brackets. Write ${name} to mean every use of the tool.`;
  if (name.startsWith("mcp__")) return `cannot have content. Write ${name} alone.`;
  return findContentProblem(name, content) ?? (use === "deny" ? findUnmatchedContent(name, content) : undefined);
}

const FILES: ReadonlySet<string> = new Set(["Cd", "Edit", "Glob", "NotebookEdit", "NotebookRead", "Read", "Write"]);
const SHELLS: ReadonlySet<string> = new Set(["Bash", "PowerShell"]);
/**
 * Tools for which Claude Code never matches rules with content, by the tool to write instead: `Read` or `Edit` for paths,
 * `Bash` for commands of `Monitor`.
 */
const NEVER_MATCH: ReadonlyMap<string, string> = new Map([
  ["Glob", "Read"],
  ["Monitor", "Bash"],
  ["MultiEdit", "Edit"],
  ["NotebookEdit", "Edit"],
  ["Write", "Edit"],
]);

function findContentProblem(name: string, content: string): string | undefined {
  const isOdd = unescaped(content, "(").length !== unescaped(content, ")").length;
  if (isOdd && /(?:^|[^\\])\\[()]/.test(content)) {
    return "has a bracket behind a backslash beside one without. Write [(] or [)] for a bracket in a path.";
  }
  if (SHELLS.has(name) && content === ":*") return `has no command before :*. Write ${name} to mean every command.`;
  if (name === "WebSearch" && /[*?]/.test(content)) return "has a * or ?, which no search has. Write WebSearch alone.";
  if (name === "WebFetch" && (!content.startsWith("domain:") || content.includes("://"))) {
    return "names no host. Write WebFetch(domain:example.com).";
  }
  return FILES.has(name) && content.includes(":*") ? "has :*, which only commands have. Write * or **." : undefined;
}

/** Finds content that Claude Code keeps and never matches: an allow rule would still ask, a deny rule would deny nothing. */
function findUnmatchedContent(name: string, content: string): string | undefined {
  if (name.includes("*")) return `never matches: content is for one tool. Write its name, as in Bash(${content}).`;
  const matching = NEVER_MATCH.get(name);
  return matching && `never matches. Write ${matching}(${content}), which is for all tools that do the same.`;
}

/** Options of a session that hold rules. */
interface WithRules {
  readonly agents?: Readonly<Record<string, { readonly disallowedTools?: string[]; readonly tools?: string[] }>>;
  readonly allowedTools?: readonly string[];
  readonly disallowedTools?: readonly string[];
}

/** Returns the problems of all rules in the options of a session, each with the path of its field. */
export function malformedRules({ agents = {}, allowedTools, disallowedTools }: WithRules): MalformedRule[] {
  const ofAgents = Object.entries(agents).flatMap(([name, agent]) => [
    ...findProblems(["agents", name, "disallowedTools"], agent.disallowedTools, "deny"),
    ...findProblems(["agents", name, "tools"], agent.tools, "tools"),
  ]);
  return [
    ...findProblems(["disallowedTools"], disallowedTools, "deny"),
    ...findProblems(["allowedTools"], allowedTools, "allow"),
    ...ofAgents,
  ];
}

interface MalformedRule {
  readonly path: readonly (number | string)[];
  readonly problem: string;
}

function findProblems(path: readonly string[], rules: readonly string[] = [], use: RuleUse): MalformedRule[] {
  return rules.flatMap((rule, index) => {
    const problem = malformedRule(rule, use);
    return problem === undefined ? [] : [{ path: [...path, index], problem }];
  });
}
