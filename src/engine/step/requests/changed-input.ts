import { CALLER } from "../../../domain/approvals/answer-source.ts";
import { isWithin, tighter } from "../../../domain/approvals/risk.ts";
import { parseDenyRule } from "../../../domain/approvals/rule.ts";
import type { CommandOf } from "../../../domain/command.ts";
import type { Refusal } from "../../../domain/error.ts";
import type { PermissionRequest, OpenRequest } from "../../../domain/permission.ts";
import type { Judgement } from "../../ports.ts";
import { basesOf, judge, mayMatchMention, uncheckedBy, type Rules } from "../../policy/rules.ts";
import type { Draft } from "../draft.ts";

/**
 * Returns the refusal of a changed input, or `undefined`. Claude Code does not check a changed input again, so rules, bounds
 * and folders are checked here, whichever approver answers.
 */
export function changedInputObjection(
  draft: Draft,
  request: OpenRequest,
  answer: CommandOf<"answer">["data"],
  judgement: Judgement | undefined,
): Refusal | undefined {
  const { decision } = answer;
  // An answer to a question always changes the input.
  if (decision.behavior === "deny" || !decision.updatedInput || request.kind === "question") return undefined;
  if (!judgement) return inputDenied(`its effect cannot be determined. ${ADVICE}`);
  const { denying: _, mentions: __, ...judged } = judgement;
  const { kind, requestId, toolName } = request;
  const changed: PermissionRequest = {
    requestId,
    kind,
    toolName,
    toolUseId: "",
    input: decision.updatedInput,
    ...judged,
  };
  if (changed.refused !== undefined) return inputDenied(changed.refused);
  return (
    ruleObjection(draft, changed, judgement) ??
    (isBound(answer) ? uncheckedObjection(draft, changed, judgement) : undefined) ??
    boundObjection(draft, changed, answer)
  );
}

/** True if a caller gave the answer: a model, or a program that does not count as a person. */
function isBound({ asCaller, by }: CommandOf<"answer">["data"]): boolean {
  return by === CALLER || asCaller === true;
}

const ADVICE = "Allow the original input, or deny the request.";

/** Refuses an input that a readable rule denies, or a command that mentions a path of such a rule. */
function ruleObjection(
  { policy: { cwd, rules } }: Draft,
  changed: PermissionRequest,
  { denying, mentions = [] }: Judgement,
): Refusal | undefined {
  const own = denying.map(parseDenyRule);
  const denies = (deny: Rules["deny"]) => {
    const verdict = judge(changed, { ...rules, allow: [], ask: [], deny }, cwd);
    return verdict?.behavior === "deny" ? verdict.rule : undefined;
  };
  const ofOperator = denies(rules.deny);
  if (ofOperator !== undefined) return inputDenied(`a rule of the operator denies it: ${ofOperator}. ${ADVICE}`);
  const ofSession = denies(own);
  if (ofSession !== undefined)
    return inputDenied(`a rule of the session or of its settings denies it: ${ofSession}. ${ADVICE}`);
  const bases = basesOf(changed, rules, cwd);
  const met = [...rules.deny, ...own].find((rule) => mayMatchMention(rule, changed.toolName, mentions, bases));
  return met && inputDenied(`the command may touch what a rule denies: ${met.text}. ${ADVICE}`);
}

/**
 * Refuses a caller's command that cannot be checked against a deny rule. A person has seen the changed command, and was shown
 * an original that could be as unreadable; a model could hide a denied command.
 */
function uncheckedObjection(
  { policy: { rules } }: Draft,
  changed: PermissionRequest,
  { denying }: Judgement,
): Refusal | undefined {
  const unchecked = uncheckedBy([...rules.deny, ...denying.map(parseDenyRule)], changed);
  if (!unchecked) return undefined;
  const { rule, why } = unchecked;
  const advice = `Write it as one plain command, with its files written out. Or: ${ADVICE}`;
  return inputDenied(`the command cannot be checked against the rule ${rule}: ${why}. ${advice}`);
}

function boundObjection(
  { policy }: Draft,
  changed: PermissionRequest,
  answer: CommandOf<"answer">["data"],
): Refusal | undefined {
  const { level = "all" } = changed.risk ?? {};
  const most = answer.decides ? policy.sessionApproves : isBound(answer) ? policy.callerApproves : "all";
  const bound = tighter(answer.bound ?? "all", most);
  if (isWithin(level, bound)) return undefined;
  return inputDenied(
    `${changed.toolName} with it (${level}) is more than a caller may approve here (${bound}). ${ADVICE}`,
  );
}

function inputDenied(problem: string): Refusal {
  return { code: "PERMISSION_DENIED", message: `updatedInput: ${problem}` };
}
