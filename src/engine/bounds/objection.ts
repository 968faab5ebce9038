import { CALLER } from "../../domain/approvals/approver-name.ts";
import type { Command } from "../../domain/command.ts";
import { AppError, type Refusal } from "../../domain/error.ts";
import { checkDecision, checkMode, type Gate } from "../gate.ts";
import type { Policy } from "./policy.ts";
import { checkModeWithin } from "./bound.ts";
import { decisionWithin } from "./updates.ts";

/**
 * What the owner of a session has against a command. A command was checked where it was given; that can be at a server whose
 * operator allows more than the owner's. Undefined where there is nothing.
 */
export function objectionTo(
  command: Command,
  { gate, policy }: { readonly gate: Gate; readonly policy: Policy },
): Refusal | undefined {
  try {
    check(command, gate, policy);
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function check({ data, kind }: Command, gate: Gate, policy: Policy): void {
  if (kind === "control" && data.request.do === "configure") {
    checkMode(gate, data.request.permissionMode);
    checkModeWithin(data.request.permissionMode, data.decides ? policy.sessionApproves : policy.callerApproves);
  }
  if (kind !== "answer") return;
  const { asCaller, by, decides, decision } = data;
  checkDecision(gate, decision);
  if (by !== CALLER && !asCaller) return;
  const [left] = decisionWithin(decision, decides ? policy.sessionApproves : policy.callerApproves).withheld;
  if (left !== undefined) throw new AppError("PERMISSION_DENIED", left);
}
