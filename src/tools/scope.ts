import { AppError } from "../domain/error.ts";
import { SCOPES, type Caller, type Scope } from "../domain/principal.ts";

/**
 * Which scope a call needs: looking is `read`, what starts, changes or ends something is `run`, what decides a request of
 * Claude Code is `approve`, what settles how the server runs is `admin`. Scopes do not contain each other.
 */

/** Of every call of a tool alike, or of each of its actions. */
export type ToolScope = Scope | Readonly<Record<string, Scope>>;

interface Scoped {
  readonly scope: ToolScope;
}

/** What a call with these arguments needs, whatever they are: with an unknown action, the most that one of them needs. */
export function scopeOf({ scope }: Scoped, raw: unknown): Scope {
  if (typeof scope === "string") return scope;
  const action = typeof raw === "object" && raw !== null && "action" in raw ? raw.action : undefined;
  const known = typeof action === "string" && Object.hasOwn(scope, action) ? scope[action] : undefined;
  return known ?? strictest(Object.values(scope));
}

/** Whether there is anything in the tool that the caller may do. */
export function mayUse({ scopes }: Pick<Caller, "scopes">, { scope }: Scoped): boolean {
  const any = typeof scope === "string" ? [scope] : Object.values(scope);
  return any.some((each) => scopes.includes(each));
}

/** Throws PERMISSION_DENIED; `what` is what the caller wanted, in a word. */
export function requireScope({ scopes }: Pick<Caller, "scopes">, needed: Scope, what: string): void {
  if (scopes.includes(needed)) return;
  const had = scopes.length === 0 ? "no scope" : `the scope${scopes.length > 1 ? "s" : ""} ${scopes.join(", ")}`;
  const advice = "Use a token that has it, or ask the operator of the server for one.";
  throw new AppError("PERMISSION_DENIED", `${what} needs the scope ${needed}; this caller has ${had}. ${advice}`);
}

function strictest(scopes: readonly Scope[]): Scope {
  return SCOPES.findLast((scope) => scopes.includes(scope)) ?? "admin";
}
