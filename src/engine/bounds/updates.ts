import type { Bound } from "../../domain/approvals/risk.ts";
import type { Decision, PermissionUpdate } from "../../domain/permission.ts";
import { leftOut, mayUseMode } from "./bound.ts";

/** A decision without the changes of permissions by which a caller would approve more than he may. */
export function decisionWithin(decision: Decision, bound: Bound): { decision: Decision; withheld: readonly string[] } {
  if (decision.behavior === "deny" || !decision.updatedPermissions) return { decision, withheld: [] };
  const { updatedPermissions: updates, ...rest } = decision;
  const kept = updates.filter((update) => isWithinBound(update, bound));
  const withheld = updates
    .filter((update) => !kept.includes(update))
    .map((update) => leftOut(`updatedPermissions ${nameOf(update)}`, bound));
  return { decision: { ...rest, ...(kept.length > 0 && { updatedPermissions: kept }) }, withheld };
}

function isWithinBound(update: PermissionUpdate, bound: Bound): boolean {
  switch (update.type) {
    case "setMode":
      return mayUseMode(update.mode, bound);
    case "addRules":
      return update.behavior !== "allow" || bound === "all";
    // What it replaces can have been stricter.
    case "replaceRules":
    case "addDirectories":
      return bound === "all";
    case "removeRules":
      return update.behavior === "allow" || bound === "all";
    case "removeDirectories":
      return true;
  }
}

function nameOf(update: PermissionUpdate): string {
  if (update.type === "setMode") return `setMode ${update.mode}`;
  if (!("rules" in update)) return `${update.type} ${update.directories.join(", ")}`;
  const rules = update.rules.map(({ ruleContent, toolName }) =>
    ruleContent === undefined ? toolName : `${toolName}(${ruleContent})`,
  );
  return `${update.type} ${update.behavior} ${rules.join(", ")}`;
}
