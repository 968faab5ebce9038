import { AppError } from "../../domain/error.ts";
import type { Caller, Scope } from "../../domain/principal.ts";

/**
 * Throws PERMISSION_DENIED; `what` names what the caller wanted. Every action asks here before it runs. A surface asks
 * earlier as well, with the scope of the action, so that it does not even look at arguments that it will not use.
 */
export function requireScope({ scopes }: Pick<Caller, "scopes">, needed: Scope, what: string): void {
  if (scopes.includes(needed)) return;
  const had = scopes.length === 0 ? "no scope" : `the scope${scopes.length > 1 ? "s" : ""} ${scopes.join(", ")}`;
  const advice = "Use a token that has it, or ask the operator of the server for one.";
  throw new AppError("PERMISSION_DENIED", `${what} needs the scope ${needed}; this caller has ${had}. ${advice}`);
}
