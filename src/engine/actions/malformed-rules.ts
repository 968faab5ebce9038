import { malformedParts, malformedRules } from "../../domain/approvals/malformed-rule.ts";
import { invalidArgument } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { PermissionUpdate } from "../../domain/permission.ts";
import { pathName } from "./unsafe-text.ts";

/** Refuses rules that Claude Code would drop silently, because the caller would wrongly take a tool for denied. */
export function refuseMalformedRules(options: Partial<SessionOptions>): void {
  const [first] = malformedRules(options);
  if (first) throw invalidArgument(pathName(first.path), first.problem);
}

/** Refuses malformed rules that an answer adds. An `allow` rule that matches nothing only leads to a question. */
export function refuseMalformedUpdates(updates: readonly PermissionUpdate[] = []): void {
  for (const [index, update] of updates.entries()) {
    if (update.type !== "addRules" && update.type !== "replaceRules") continue;
    if (update.behavior === "allow") continue;
    for (const { ruleContent, toolName } of update.rules) {
      const problem = malformedParts(toolName, ruleContent, "deny");
      if (problem !== undefined) throw invalidArgument(`updatedPermissions.${String(index)}.rules`, problem);
    }
  }
}
