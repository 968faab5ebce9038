import type { z } from "zod";
import type { Caller, Scope } from "../../domain/principal.ts";
import type { Engine } from "../api.ts";
import { requireScope } from "./scope.ts";

/**
 * Defines operations of callers on sessions once for all surfaces: name, scope, fields and effect. MCP tools, the console and
 * the HTTP API derive operations from here; how to describe an action, read its input and present its result is up to each
 * surface.
 */

/** A caller with its engine. `by` names the surface in the log. */
export interface ActingCaller {
  readonly engine: Engine;
  readonly caller: Caller;
  readonly by: string;
}

export type Fields = Readonly<Record<string, z.ZodType>>;

export type ArgumentsOf<F extends Fields> = z.output<ReturnType<typeof z.strictObject<F>>>;

export interface SessionAction<F extends Fields, A, R> {
  readonly name: string;
  /** Scope that `run` requires of a caller. */
  readonly scope: Scope;
  /** Fields of the input, with limits. */
  readonly fields: F;
  /** Throws PERMISSION_DENIED for a caller without `scope`, before anything is done. */
  readonly run: (acting: ActingCaller, args: A) => Promise<R>;
}

/** Any action, for code common to all actions. */
export type AnySessionAction = SessionAction<Fields, never, unknown>;

/** Defines an action that takes its `fields` unchanged. */
export function defineAction<const F extends Fields, R>(
  definition: SessionAction<F, ArgumentsOf<F>, R>,
): SessionAction<F, ArgumentsOf<F>, R> {
  return checked(definition);
}

/** Defines an action that takes a request, built by each surface from the `fields` and its own knowledge. */
export function defineRequest<const F extends Fields, A, R>(
  definition: SessionAction<F, A, R>,
): SessionAction<F, A, R> {
  return checked(definition);
}

function checked<F extends Fields, A, R>(definition: SessionAction<F, A, R>): SessionAction<F, A, R> {
  const { name, run, scope } = definition;
  return {
    ...definition,
    run: async (acting, args) => {
      const { caller, engine } = acting;
      requireScope(caller, scope, name);
      return run({ ...acting, engine: engine.forCaller(caller) }, args);
    },
  };
}
