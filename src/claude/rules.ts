import { namedBy, type Rule } from "../domain/approvals/rule.ts";

/** The operator's rules as Claude Code is given them, so that they hold for what it would not ask about as well. */

export function handedOver(rules: readonly Rule[], cwd: string): string[] {
  return rules.flatMap((rule) => (rule.content === undefined ? namedBy(rule.toolName) : [withPath(rule, cwd)]));
}

/** A process can have been started in another folder than its session's: what counts from there is made absolute. */
function withPath({ content = "", text, toolName }: Rule, cwd: string): string {
  const isAbsolute = content.startsWith("//") || content === "~" || content.startsWith("~/");
  if (isAbsolute || (toolName !== "Read" && toolName !== "Edit")) return text;
  const isName = !content.slice(0, -1).includes("/");
  const way = content.replace(/^\.?\//, "");
  const folder = cwd
    .replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`)
    .replaceAll("\\", "/")
    .replaceAll(/[*?[\]]/g, "\\$&");
  return `${toolName}(/${folder}/${isName ? "**/" : ""}${way})`;
}
