import { CALLER } from "../../../domain/approvals/answer-source.ts";
import { withNewest } from "../../../domain/approvals/remembered.ts";
import type { CommandOf } from "../../../domain/command.ts";
import { accept, emit, refuse, type Draft } from "../draft.ts";

/** Remembers and revokes answers that hold until the session ends. */

/** Adds the rules of a remembered answer to the state, and returns them. */
export function rememberAnswer(
  { at, state }: Draft,
  { data: { asCaller, by, decides, remember } }: CommandOf<"answer">,
): string[] {
  if (!remember) return [];
  const { eventId, level, rules } = remember;
  const holder = decides && by === CALLER ? "decide" : asCaller ? CALLER : by;
  state.remembered = withNewest(
    state.remembered ?? [],
    // `decide` marks answers that the bound of callers (`callerApproves`) does not limit.
    rules.map((rule) => ({ rule, level, at, eventId, by: holder })),
  );
  return rules;
}

export function onRevoke(draft: Draft, command: CommandOf<"revoke">): void {
  const { state } = draft;
  const { by, rule } = command.data;
  if (state.closed) return refuse(draft, command, "CANCELLED", `The session was ${state.closed.reason}.`);
  const known = state.remembered ?? [];
  const revoked = [
    ...new Set(known.filter((each) => rule === undefined || each.rule === rule).map((each) => each.rule)),
  ];
  const cursor = state.lastEventId + 1;
  if (revoked.length === 0) {
    const problem = rule === undefined ? "nothing is remembered" : `no answer is remembered for the rule ${rule}`;
    const advice = "List remembered answers with claude_code_session (action: get).";
    return refuse(draft, command, "INVALID_ARGUMENT", `rule: ${problem}. ${advice}`);
  }
  state.remembered = known.filter((each) => !revoked.includes(each.rule));
  emit(draft, {
    type: "notice",
    data: { kind: "revoked", message: `Asked again from now on: ${revoked.join(", ")} (by ${by}).` },
  });
  accept(draft, command, cursor, { revoked });
}
