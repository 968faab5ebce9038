import { PEER_MESSAGE } from "../domain/approvals/peer-message.ts";
import { namedBy, parseRule, type Rule, type RuleBehavior } from "../domain/approvals/rule.ts";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";

/** The operator's rules as Claude Code is given them, so that they hold for what it would not ask about as well. */

/** Those of a policy. A session with one that cannot be read is not started (engine/policy/operator.ts). */
export function rulesOf({ rules }: Pick<SessionPolicy, "rules">): Record<RuleBehavior, Rule[]> {
  const parsed = (behavior: RuleBehavior) =>
    rules[behavior].flatMap((text) => {
      const read = parseRule(text, behavior);
      return read.ok ? [read.rule] : [];
    });
  return { allow: parsed("allow"), ask: parsed("ask"), deny: parsed("deny") };
}

export function handedOver(rules: readonly Rule[], cwd: string): string[] {
  const known = rules.filter(({ toolName }) => toolName !== PEER_MESSAGE);
  return known.flatMap((rule) => (rule.content === undefined ? namedBy(rule.toolName) : [withPath(rule, cwd)]));
}

/** Rules of settings that lie in the folder, as they mean the same in settings that lie nowhere. */
export function rootedIn(cwd: string, texts: readonly string[]): string[] {
  return texts.map((text) => {
    const read = parseRule(text, "allow");
    // What we do not take Claude Code does not match either, or it is a form of a later version.
    return read.ok && read.rule.content !== undefined ? withPath(read.rule, cwd) : text;
  });
}

/** A process can have been started in another folder than its session's: what counts from there is made absolute. */
function withPath({ content = "", text, toolName }: Rule, cwd: string): string {
  const isAbsolute = content.startsWith("//") || content === "~" || content.startsWith("~/");
  if (isAbsolute || (toolName !== "Read" && toolName !== "Edit")) return text;
  const isName = !content.slice(0, -1).includes("/");
  const way = content.replace(/^\.?\//, "");
  return `${toolName}(${rulePath(cwd)}/${isName ? "**/" : ""}${way})`;
}

/** An absolute path as it is written in a rule. */
export function rulePath(path: string): string {
  const way = path
    .replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`)
    .replaceAll("\\", "/")
    .replaceAll(/[*?[\]]/g, "\\$&");
  return `/${way}`;
}
