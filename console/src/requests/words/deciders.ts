import type { Decision, Me } from "../../../../src/console/wire.ts";
import type { ApproverName } from "../../../../src/domain/approvals/answer-source.ts";
import { answerSourceText, isUndecided, approverName } from "../../state/answer-source.ts";

/** Names of approvers and of answer sources. */

/** Approvers after `approver`, in words; "" if `approver` is the last. */
export function laterApprovers(approver: ApproverName, approvalChain: readonly ApproverName[]): string {
  const behind = approvalChain.includes(approver) ? approvalChain.slice(approvalChain.indexOf(approver) + 1) : [];
  return behind.map(approverName).join(", then ");
}

const VERDICTS: Readonly<Record<Decision["behavior"], string>> = { allow: "Allowed", deny: "Denied" };
/** Words for tools whose requests are not permissions. */
const TOOL_VERDICTS: Readonly<Partial<Record<string, typeof VERDICTS>>> = {
  AskUserQuestion: { allow: "Answered", deny: "Declined" },
  ExitPlanMode: { allow: "Approved", deny: "Sent back" },
};
const NAMES: Readonly<Partial<Record<string, string>>> = { AskUserQuestion: "Question", ExitPlanMode: "Plan" };

/** Subject of the decision: a question, a plan, or a tool. */
export function decidedName({ toolName }: Pick<Decision, "toolName">): string {
  return (Object.hasOwn(NAMES, toolName) ? NAMES[toolName] : undefined) ?? toolName;
}

/** "Allowed by the rule Bash(npm test)". `isMine`: this page sent the answer. */
export function decidedWords(decided: Pick<Decision, "behavior" | "by" | "rule" | "toolName">, isMine = false): string {
  const { behavior, by, toolName } = decided;
  if (isUndecided(by)) return `Closed ${answerSourceText(by)}`;
  const words = Object.hasOwn(TOOL_VERDICTS, toolName) ? TOOL_VERDICTS[toolName] : undefined;
  const what = (words ?? VERDICTS)[behavior];
  if (isMine && by === "console") return `${what} by you`;
  if (decided.rule !== undefined) return `${what} by the rule ${decided.rule}`;
  return `${what} ${answerSourceText(by)}`;
}

/**
 * Reason why this page cannot answer requests, with a remedy; `undefined` if the page can. `approvals`: approvers of the
 * session, if known.
 */
export function whyReadOnly(
  me: Pick<Me, "scopes">,
  approvals: readonly ApproverName[] = ["console"],
): string | undefined {
  if (!approvals.includes("console")) {
    const isBefore = (approver: ApproverName) => approver === "user";
    const [before, behind] = [approvals.filter(isBefore), approvals.filter((approver) => !isBefore(approver))];
    const approvalChain = [...before, "console", ...behind].join(",");
    const now = approvals.length === 0 ? "No one" : `Only ${approvals.map(approverName).join(" or ")}`;
    return `${now} can answer requests of this session, not this page. For new sessions, start the client or server with --approvals ${approvalChain}.`;
  }
  if (me.scopes.includes("approve")) return undefined;
  return "You can view requests but not answer them. That requires a token with the scope approve; ask the operator for one.";
}
