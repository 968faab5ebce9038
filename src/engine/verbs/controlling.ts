import { randomUUID } from "node:crypto";
import type { CommandOf } from "../../domain/command.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { Caller } from "../../domain/principal.ts";
import { boundOf, checkModeWithin } from "../bounds/bound.ts";
import { checkMode } from "../gate.ts";
import { gateUnder, type Operator } from "../operator.ts";
import type { SessionRecord } from "../ports.ts";

/** What is asked of Claude Code itself, as the command that asks it. Throws PERMISSION_DENIED for a mode that is too much. */
export function controlCommand(
  operator: Operator,
  caller: Caller,
  { policy, principal, spec }: SessionRecord,
  data: { readonly by: string; readonly request: ControlRequest },
): CommandOf<"control"> {
  const { request } = data;
  if (request.do === "configure") {
    const gate = gateUnder(operator, { policy, principal });
    checkMode(gate, request.permissionMode);
    checkModeWithin(request.permissionMode, boundOf(gate.callerApproves, caller, spec.callerApproves));
  }
  const decides = caller.scopes.includes("decide") ? { decides: true } : {};
  return { id: randomUUID(), principal, kind: "control", data: { ...data, ...decides } };
}
