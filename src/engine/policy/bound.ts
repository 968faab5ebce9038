import { isWithin, tighter, type Bound } from "../../domain/approvals/risk.ts";
import { AppError } from "../../domain/error.ts";
import type { PermissionMode, Decision, PermissionUpdate } from "../../domain/permission.ts";
import type { Caller } from "../../domain/principal.ts";

/** Limits how much a caller may approve, by an answer, by an option of a session, or by its permission mode. */

/** Returns the tighter of `most` (the operator's bound, void with the scope decide) and `own` (the session's). */
export function boundOf(most: Bound, { scopes }: Pick<Caller, "scopes">, own: Bound = "all"): Bound {
  if (!scopes.includes("approve")) return "none";
  return scopes.includes("decide") ? own : tighter(most, own);
}

/** Tool uses that run without asking in a mode, beyond those in `default`. */
const MODES: Readonly<Record<PermissionMode, Bound>> = {
  default: "none",
  plan: "none",
  dontAsk: "none",
  acceptEdits: "edits",
  auto: "all",
  bypassPermissions: "all",
};

export function mayUseMode(mode: PermissionMode, bound: Bound): boolean {
  return isWithin(MODES[mode], bound);
}

export function checkModeWithin(mode: PermissionMode | undefined, bound: Bound): void {
  if (mode === undefined || mayUseMode(mode, bound)) return;
  throw new AppError(
    "PERMISSION_DENIED",
    `permissionMode ${mode} lets more run without asking than ${whoseBound(bound)}.`,
  );
}

/** Returns the sentence for a caller about a part of the request that was left out. */
export function leftOutText(what: string, bound: Bound): string {
  const shown = what.length > MAX_LENGTH ? `${what.slice(0, MAX_LENGTH)}...` : what;
  return `${shown}: left out, because it lets more run without asking than ${whoseBound(bound)}. Those tool uses need approval instead.`;
}

/** Maximum length of `what`, characters. */
const MAX_LENGTH = 300;

function whoseBound(bound: Bound): string {
  return bound === "none" ? "this caller may approve (nothing)" : `callers may approve here (${bound})`;
}

/** Returns the decision without permission updates that exceed the caller's bound. */
export function decisionWithin(decision: Decision, bound: Bound): { decision: Decision; withheld: readonly string[] } {
  if (decision.behavior === "deny" || !decision.updatedPermissions) return { decision, withheld: [] };
  const { updatedPermissions: updates, ...rest } = decision;
  const kept = updates.filter((update) => isWithinBound(update, bound));
  const withheld = updates
    .filter((update) => !kept.includes(update))
    .map((update) => leftOutText(`updatedPermissions ${nameOf(update)}`, bound));
  return { decision: { ...rest, ...(kept.length > 0 && { updatedPermissions: kept }) }, withheld };
}

function isWithinBound(update: PermissionUpdate, bound: Bound): boolean {
  switch (update.type) {
    case "setMode":
      return mayUseMode(update.mode, bound);
    case "addRules":
      return update.behavior !== "allow" || bound === "all";
    // `replaceRules` may replace stricter rules.
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
