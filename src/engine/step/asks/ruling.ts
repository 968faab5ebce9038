import { CALLER } from "../../../domain/approvals/rung.ts";
import { isWithin } from "../../../domain/approvals/risk.ts";
import { parseRule, type Rule } from "../../../domain/approvals/rule.ts";
import type { Ask, Decision } from "../../../domain/permission.ts";
import { allows, basesOf, isTheCommand, judge } from "../../rules/judge.ts";
import type { Draft } from "../draft.ts";

export interface Ruling {
  readonly decision: Decision;
  readonly rule: string;
}

/** What a rule says of a request that nobody then need be asked; undefined where somebody is to be. */
export function ruleFor(draft: Draft, ask: Ask): Ruling | undefined {
  const { cwd, rules } = draft.policy;
  const verdict = judge(ask, rules, cwd);
  if (!verdict) return rememberedFor(draft, ask);
  const { behavior, isUnclear, rule } = verdict;
  // Who was shown just this command has decided it.
  if (behavior === "ask") return isUnclear && rememberedFor(draft, ask, isTheCommand);
  if (behavior === "allow") return { decision: { behavior }, rule };
  const message = `A rule of the operator of this server denies it: ${rule}. Nobody can allow it here; do without.`;
  return { decision: { behavior, message }, rule };
}

/** An answer that holds on, for what is of no greater risk; one that a caller has given while a caller may still give it. */
function rememberedFor(
  { policy, state }: Draft,
  ask: Ask,
  isEnough: (rule: Rule, ask: Ask) => boolean = () => true,
): Ruling | undefined {
  const { callerApproves, cwd, rules } = policy;
  const { level = "all" } = ask.risk ?? {};
  const found = state.remembered?.find((each) => {
    if (!isWithin(level, each.level) || (each.by === CALLER && !isWithin(level, callerApproves))) return false;
    const parsed = parseRule(each.rule, "allow");
    return parsed.ok && isEnough(parsed.rule, ask) && allows(parsed.rule, ask, basesOf(ask, rules, cwd));
  });
  return found && { decision: { behavior: "allow" }, rule: found.rule };
}
