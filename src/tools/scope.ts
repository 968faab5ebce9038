import { CALLER } from "../domain/approvals/answer-source.ts";
import { SCOPES, type Caller, type Scope } from "../domain/principal.ts";
import type { ActingCaller } from "../engine/actions/action.ts";
import type { Engine } from "../engine/api.ts";

/**
 * Scope of a call: `read` to look, `run` to start, change or end, `approve` to answer a request of Claude Code, `admin` to
 * configure the server. No scope includes another.
 */

/** Scope of all calls of a tool, or a scope for each of its actions. */
export type ToolScope = Scope | Readonly<Record<string, Scope>>;

interface Scoped {
  readonly scope: ToolScope;
}

/**
 * Returns the scope of a call with the arguments `raw`; for an unknown action, the strictest scope of the tool. Never throws.
 */
export function requiredScope({ scope }: Scoped, raw: unknown): Scope {
  if (typeof scope === "string") return scope;
  const action = typeof raw === "object" && raw !== null && "action" in raw ? raw.action : undefined;
  const known = typeof action === "string" && Object.hasOwn(scope, action) ? scope[action] : undefined;
  return known ?? strictest(Object.values(scope));
}

/** True if the caller may use the tool, or at least one of its actions. */
export function mayUse({ scopes }: Pick<Caller, "scopes">, { scope }: Scoped): boolean {
  const any = typeof scope === "string" ? [scope] : Object.values(scope);
  return any.some((each) => scopes.includes(each));
}

/** Converts a caller for `engine/actions`. */
export function actingCaller(caller: Caller, { engine }: { readonly engine: Engine }): ActingCaller {
  return { engine, caller, by: CALLER };
}

function strictest(scopes: readonly Scope[]): Scope {
  return SCOPES.findLast((scope) => scopes.includes(scope)) ?? "admin";
}
