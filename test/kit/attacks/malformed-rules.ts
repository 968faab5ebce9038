/**
 * Texts that could be rules, by what the real Claude Code does with them in a settings file and how a caller's
 * `disallowedTools` is answered. `drops`: both refuse the text. `keeps`: both accept the text. `never`: Claude Code keeps a
 * rule that never matches. `split`: the command line splits the text into several rules. `named`: not well-formed, but
 * corrected before use.
 */
type Kind = "drops" | "keeps" | "named" | "never" | "split";

export const RULE_TEXTS: readonly (readonly [text: string, kind: Kind])[] = [
  ["Bash(touch *", "drops"],
  ["Bash(touch *) x", "drops"],
  ["Bash(touch *)x", "drops"],
  ["Bash(touch *):", "drops"],
  ["Bash(touch *)\n", "drops"],
  ["Bash touch *)", "drops"],
  ["Bash)touch *(", "drops"],
  ["Bash(touch *]", "drops"],
  ["Bash[touch *]", "never"],
  ["Bash{touch *}", "never"],
  ["Bash<touch *>", "never"],
  ["Bash（touch *）", "never"],
  ["Bash\\(touch\\)", "never"],
  ["Bash()", "drops"],
  ["Bash( )", "never"],
  ["(touch *)", "never"],
  ["Bash(:*)", "drops"],
  ["Bash(*)", "keeps"],
  ["bash(touch *)", "named"],
  ["Read, Write", "split"],
  ["Read Write", "split"],
  ["Bash(ls), Read", "drops"],
  ["Bash(ls) Read", "drops"],
  ["Bash(ls, cat)", "keeps"],
  ["Bash(touch\\)", "drops"],
  ["Bash(touch\\()", "keeps"],
  ["Bash(touch\\(b))", "drops"],
  ["Bash(touch (b) c)", "keeps"],
  ["Bash(touch (b)", "keeps"],
  ["Bash(touch)b)", "keeps"],
  ["Bash((touch)", "keeps"],
  ["Bash(touch *))", "keeps"],
  ["mcp__x(y)", "drops"],
  ["mcp__x__y(z)", "drops"],
  ["mcp__x__y", "keeps"],
  ["mcp__x__*", "keeps"],
  ["WebSearch(x*)", "drops"],
  ["WebFetch(https://x)", "drops"],
  ["WebFetch(x.com)", "drops"],
  ["WebFetch(domain:x.com)", "keeps"],
  ["Edit(a:*)", "drops"],
  ["Read(a:*)", "drops"],
  ["Write(a)", "never"],
  ["NotebookEdit(a)", "never"],
  ["Glob(a)", "never"],
  ["Monitor(touch *)", "never"],
  ["*(touch *)", "never"],
  ["B*(touch *)", "never"],
  ["Edit(../a)", "keeps"],
  ["Edit(!a)", "keeps"],
  ["Read(//x y/**)", "keeps"],
  ["Bash(a:*b)", "keeps"],
  ["Nope", "keeps"],
  ["Nope(x)", "keeps"],
  ["Skill(x)", "keeps"],
  ["Agent(x)", "keeps"],
];

/** Rules refused only in lists that allow. */
export const NO_ALLOW = ["*", "Web*", "mcp__*", "mcp__*__x"];
