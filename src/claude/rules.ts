import { PEER_MESSAGE } from "../domain/approvals/peer-message.ts";
import { toolsCoveredBy, parseRule, type Rule, type RuleBehavior } from "../domain/approvals/rule.ts";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";

/** Passes the operator's rules to Claude Code, so that the rules also hold for uses that Claude Code would not ask about. */

/** Parses the rules of a policy. A session with an unreadable rule is not started (engine/policy/operator.ts). */
export function parseRules({ rules }: Pick<SessionPolicy, "rules">): Record<RuleBehavior, Rule[]> {
  const parsed = (behavior: RuleBehavior) =>
    rules[behavior].flatMap((text) => {
      const read = parseRule(text, behavior);
      return read.ok ? [read.rule] : [];
    });
  return { allow: parsed("allow"), ask: parsed("ask"), deny: parsed("deny") };
}

export function toClaudeRules(rules: readonly Rule[], cwd: string): string[] {
  const known = rules.filter(({ toolName }) => toolName !== PEER_MESSAGE);
  return known.flatMap((rule) => (rule.content === undefined ? toolsCoveredBy(rule.toolName) : [withPath(rule, cwd)]));
}

/** Rewrites rules of settings in the folder `cwd` with an equal meaning in settings without a folder. */
export function anchorRules(cwd: string, texts: readonly string[]): string[] {
  return texts.map((text) => {
    const read = parseRule(text, "allow");
    // A rule that we cannot parse is passed on as is: Claude Code ignores the rule too, or knows a newer syntax.
    return read.ok && read.rule.content !== undefined ? withPath(read.rule, cwd) : text;
  });
}

/** Makes relative paths absolute, because a process may have been started in another folder than its session's. */
function withPath({ content = "", text, toolName }: Rule, cwd: string): string {
  const isAbsolute = content.startsWith("//") || content === "~" || content.startsWith("~/");
  if (isAbsolute || (toolName !== "Read" && toolName !== "Edit")) return text;
  const isName = !content.slice(0, -1).includes("/");
  const way = content.replace(/^\.?\//, "");
  return `${toolName}(${rulePath(cwd)}/${isName ? "**/" : ""}${way})`;
}

/** Writes an absolute path as in a rule. */
export function rulePath(path: string): string {
  const way = path
    .replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`)
    .replaceAll("\\", "/")
    .replaceAll(/[*?[\]]/g, "\\$&");
  return `/${way}`;
}
