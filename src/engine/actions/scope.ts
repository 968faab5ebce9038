import { AppError } from "../../domain/error.ts";
import type { Caller, Scope } from "../../domain/principal.ts";

/**
 * Throws PERMISSION_DENIED without the scope `needed`; `what` names the action. Every action checks before it runs. A surface
 * also checks earlier, so that it does not read arguments in vain.
 */
export function requireScope({ scopes }: Pick<Caller, "scopes">, needed: Scope, what: string): void {
  if (scopes.includes(needed)) return;
  const had = scopes.length === 0 ? "no scope" : `the scope${scopes.length > 1 ? "s" : ""} ${scopes.join(", ")}`;
  const advice = "Use a token that has it, or ask the operator of the server for one.";
  throw new AppError("PERMISSION_DENIED", `${what} needs the scope ${needed}; this caller has ${had}. ${advice}`);
}
