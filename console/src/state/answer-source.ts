import { signal } from "@preact/signals";
import type { AnsweredBy } from "../../../src/domain/permission.ts";
import type { ApproverWords, ApproverName, Unasked } from "../../../src/domain/approvals/answer-source.ts";
import type { Me } from "../../../src/console/wire.ts";

/** Names of answer sources, in the words of the server. */

/** Display names by approver, as reported by the server. */
export const approvers = signal<Me["approvers"]>({});

/** Continues "waits for". */
export function approverName(approver: ApproverName): string {
  return namesOf(approver)?.who ?? approver;
}

/** Continues "allowed" or "denied": the answer source, or the reason why the request ended. */
export function answerSourceText(by: AnsweredBy): string {
  return namesOf(by)?.by ?? (isUnasked(by) ? UNASKED[by] : `by ${by}`);
}

function namesOf(name: string): ApproverWords | undefined {
  const known = approvers.value;
  return Object.hasOwn(known, name) ? known[name] : undefined;
}

const UNASKED: Readonly<Record<Unasked, string>> = {
  rule: "by a rule",
  timeout: "because it was not answered in time",
  cancel: "because the turn was stopped",
  withdrawn: "because Claude Code no longer waits for it",
  shutdown: "because the server was stopped",
};

/** True if the request ended without a decision, because Claude Code no longer waits for an answer. */
export function isUndecided(by: AnsweredBy): boolean {
  return by === "cancel" || by === "withdrawn" || by === "shutdown";
}

function isUnasked(by: AnsweredBy): by is Unasked {
  return Object.hasOwn(UNASKED, by);
}
