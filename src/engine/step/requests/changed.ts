import { CALLER } from "../../../domain/approvals/answer-source.ts";
import { isWithin, tighter } from "../../../domain/approvals/risk.ts";
import { readDenying } from "../../../domain/approvals/rule.ts";
import type { CommandOf } from "../../../domain/command.ts";
import type { Refusal } from "../../../domain/error.ts";
import type { PermissionRequest, OpenRequest } from "../../../domain/permission.ts";
import type { Judgement } from "../../ports.ts";
import { basesOf, judge, speaksOfMention } from "../../policy/rules.ts";
import type { Draft } from "../draft.ts";

/**
 * Why an answer may not replace the input. A changed input is another request, which Claude Code does not check again, so rules,
 * bounds and folders are checked here as for any other, whichever approver answers.
 */
export function whyNotChanged(
  draft: Draft,
  request: OpenRequest,
  answer: CommandOf<"answer">["data"],
  judgement: Judgement | undefined,
): Refusal | undefined {
  const { decision } = answer;
  // To answer a question is to change its input.
  if (decision.behavior === "deny" || !decision.updatedInput || request.kind === "question") return undefined;
  if (!judgement) return denied(`its effect cannot be determined. ${ADVICE}`);
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
  if (changed.refused !== undefined) return denied(changed.refused);
  return whyNotByRules(draft, changed, judgement) ?? whyNotByBound(draft, changed, answer);
}

const ADVICE = "Allow the original input, or deny the request.";

function whyNotByRules(
  { policy: { cwd, rules } }: Draft,
  changed: PermissionRequest,
  { denying, mentions }: Judgement,
): Refusal | undefined {
  const own = { ...rules, allow: [], ask: [], deny: denying.map(readDenying) };
  const ofOperator = judge(changed, { ...rules, allow: [], ask: [] }, cwd)?.rule;
  if (ofOperator !== undefined) return denied(`a rule of the operator denies it: ${ofOperator}. ${ADVICE}`);
  const ofSession = judge(changed, own, cwd)?.rule;
  if (ofSession !== undefined)
    return denied(`a rule of the session or of its settings denies it: ${ofSession}. ${ADVICE}`);
  const bases = basesOf(changed, rules, cwd);
  const met = [...rules.deny, ...own.deny].find((rule) => speaksOfMention(rule, changed.toolName, mentions, bases));
  return met && denied(`the command may touch what a rule denies: ${met.text}. ${ADVICE}`);
}

function whyNotByBound(
  { policy }: Draft,
  changed: PermissionRequest,
  answer: CommandOf<"answer">["data"],
): Refusal | undefined {
  const { level = "all" } = changed.risk ?? {};
  const isBound = answer.by === CALLER || answer.asCaller === true;
  const most = answer.decides ? policy.sessionApproves : isBound ? policy.callerApproves : "all";
  const bound = tighter(answer.bound ?? "all", most);
  if (isWithin(level, bound)) return undefined;
  return denied(`${changed.toolName} with it (${level}) is more than a caller may approve here (${bound}). ${ADVICE}`);
}

function denied(problem: string): Refusal {
  return { code: "PERMISSION_DENIED", message: `updatedInput: ${problem}` };
}
