import { parseDenyRule } from "../../domain/approvals/rule.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { SessionRecord } from "../ports.ts";
import { uncheckedBy } from "./rules.ts";

/**
 * Returns the deny rule that a request cannot be checked against, with the reason, for the person who decides. Rules of Claude
 * Code's settings files are known to the running process alone.
 */
export function uncheckedFor(
  request: PermissionRequest,
  { policy, spec }: Pick<SessionRecord, "policy" | "spec">,
): string | undefined {
  const texts = [...(policy?.rules.deny ?? []), ...(spec.disallowedTools ?? [])];
  const unchecked = uncheckedBy(texts.map(parseDenyRule), request);
  return unchecked && `${unchecked.rule}: ${unchecked.why}`;
}
