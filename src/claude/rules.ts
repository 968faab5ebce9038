import { PEER_MESSAGE } from "../domain/approvals/peer-message.ts";
import { toolsCoveredBy, parseRule, type Rule, type RuleBehavior } from "../domain/approvals/rule.ts";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";

/** Converts the operator's rules for Claude Code, so that the rules also hold for tool uses without a permission request. */

/**
 * Parses the rules of a policy. Omits unreadable rules: without an `allow` rule less is allowed, and `checkRules` refuses to
 * start a session with an unreadable `ask` or `deny` rule.
 */
export function parseRules({ rules }: Pick<SessionPolicy, "rules">): Record<RuleBehavior, Rule[]> {
  const parsed = (behavior: RuleBehavior) =>
    rules[behavior].flatMap((text) => {
      const read = parseRule(text, behavior);
      return read.ok ? [read.rule] : [];
    });
  return { allow: parsed("allow"), ask: parsed("ask"), deny: parsed("deny") };
}

/** Omits rules for `PEER_MESSAGE`, which is no tool of Claude Code, and writes out the tools that a bare name covers. */
export function toClaudeRules(rules: readonly Rule[], cwd: string): string[] {
  const forTools = rules.filter(({ toolName }) => toolName !== PEER_MESSAGE);
  return forTools.flatMap((rule) =>
    rule.content === undefined ? toolsCoveredBy(rule.toolName) : [withPath(rule, cwd)],
  );
}

/**
 * Makes relative paths of rules absolute. Rules from settings in the folder `cwd` then keep their meaning in settings without a
 * folder.
 */
export function anchorRules(cwd: string, texts: readonly string[]): string[] {
  return texts.map((text) => {
    const read = parseRule(text, "allow");
    // A rule that we cannot parse is passed on as is: Claude Code ignores the rule too, or knows a newer syntax.
    return read.ok && read.rule.content !== undefined ? withPath(read.rule, cwd) : text;
  });
}

/** Makes a relative path absolute, because Claude Code may have been started in a folder other than the session's. */
function withPath({ content = "", text, toolName }: Rule, cwd: string): string {
  const isAbsolute = content.startsWith("//") || content === "~" || content.startsWith("~/");
  if (isAbsolute || (toolName !== "Read" && toolName !== "Edit")) return text;
  // Matches a name without a slash at any depth, as in .gitignore.
  const isName = !content.slice(0, -1).includes("/");
  const below = content.replace(/^\.?\//, "");
  return `${toolName}(${rulePath(cwd)}/${isName ? "**/" : ""}${below})`;
}

/** Returns an absolute path in rule syntax: `//` in front, forward slashes, and glob characters escaped. */
export function rulePath(path: string): string {
  const slashed = path
    .replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`)
    .replaceAll("\\", "/")
    .replaceAll(/[*?[\]]/g, "\\$&");
  return `/${slashed}`;
}
