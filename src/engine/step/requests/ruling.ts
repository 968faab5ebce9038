import { CALLER } from "../../../domain/approvals/answer-source.ts";
import { isWithin } from "../../../domain/approvals/risk.ts";
import { parseRule, type Rule } from "../../../domain/approvals/rule.ts";
import type { PermissionRequest, Decision } from "../../../domain/permission.ts";
import { allows, basesOf, isTheCommand, judge } from "../../policy/rules.ts";
import type { Draft } from "../draft.ts";

export interface Ruling {
  readonly decision: Decision;
  readonly rule: string;
}

/** Returns the answer of a rule to the request; `undefined` if an approver has to answer. */
export function findRuling(draft: Draft, request: PermissionRequest): Ruling | undefined {
  const { cwd, rules } = draft.policy;
  const verdict = judge(request, rules, cwd);
  if (!verdict) return findRemembered(draft, request);
  const { behavior, rule, unclear } = verdict;
  // A remembered answer for exactly this command outweighs an unclear rule, because its approver was shown the command.
  if (behavior === "ask") return unclear === undefined ? undefined : findRemembered(draft, request, isTheCommand);
  if (behavior === "allow") return { decision: { behavior }, rule };
  const message = `A rule of this server's operator denies it: ${rule}. It cannot be allowed here; do without it.`;
  return { decision: { behavior, message }, rule };
}

/**
 * Returns the answer of a remembered rule that allows the request. The rule holds up to the risk `level` of the original
 * answer. A rule from a caller counts only if a caller may still approve the risk.
 */
function findRemembered(
  { policy, state }: Draft,
  request: PermissionRequest,
  isEnough: (rule: Rule, request: PermissionRequest) => boolean = () => true,
): Ruling | undefined {
  const { callerApproves, cwd, rules } = policy;
  const { level = "all" } = request.risk ?? {};
  const found = state.remembered?.find((each) => {
    if (!isWithin(level, each.level) || (each.by === CALLER && !isWithin(level, callerApproves))) return false;
    const parsed = parseRule(each.rule, "allow");
    return parsed.ok && isEnough(parsed.rule, request) && allows(parsed.rule, request, basesOf(request, rules, cwd));
  });
  return found && { decision: { behavior: "allow" }, rule: found.rule };
}
