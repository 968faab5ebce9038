import { CALLER } from "../../../domain/approvals/answer-source.ts";
import { isWithin } from "../../../domain/approvals/risk.ts";
import { parseRule } from "../../../domain/approvals/rule.ts";
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
  // A remembered answer for exactly this command outweighs an unclear rule, because its approver was shown the command.
  if (!verdict || verdict.unclear !== undefined) return asRuling(rememberedRule(draft, request, verdict !== undefined));
  const { behavior, rule } = verdict;
  if (behavior === "ask") return undefined;
  if (behavior === "allow") return { decision: { behavior }, rule };
  const message = `A rule of this server's operator denies it: ${rule}. It cannot be allowed here; do without it.`;
  return { decision: { behavior, message }, rule };
}

function asRuling(rule: string | undefined): Ruling | undefined {
  return rule === undefined ? undefined : { decision: { behavior: "allow" }, rule };
}

/**
 * Returns the remembered rule that allows the request; with `exactly`, only a rule for just this command. A rule holds up to
 * the risk `level` of the original answer. A rule from a caller counts only if a caller may still approve the risk.
 */
export function rememberedRule(
  { policy, state }: Draft,
  request: PermissionRequest,
  exactly: boolean,
): string | undefined {
  const { callerApproves, cwd, rules } = policy;
  const { level = "all" } = request.risk ?? {};
  const found = state.remembered?.find((each) => {
    if (!isWithin(level, each.level) || (each.by === CALLER && !isWithin(level, callerApproves))) return false;
    const parsed = parseRule(each.rule, "allow");
    if (!parsed.ok || (exactly && !isTheCommand(parsed.rule, request))) return false;
    return allows(parsed.rule, request, basesOf(request, rules, cwd));
  });
  return found?.rule;
}
