import { CALLER } from "../domain/approvals/answer-source.ts";
import { SCOPES, type Caller, type Scope } from "../domain/principal.ts";
import type { ActingCaller } from "../engine/actions/action.ts";
import type { Engine } from "../engine/api.ts";

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

/** A caller as actions have it. */
export function actingCaller(caller: Caller, { engine }: { readonly engine: Engine }): ActingCaller {
  return { engine, caller, by: CALLER };
}

function strictest(scopes: readonly Scope[]): Scope {
  return SCOPES.findLast((scope) => scopes.includes(scope)) ?? "admin";
}
