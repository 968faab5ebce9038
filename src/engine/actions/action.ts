import type { z } from "zod";
import type { Caller, Scope } from "../../domain/principal.ts";
import type { Engine } from "../api.ts";
import { requireScope } from "./scope.ts";

/**
 * What a caller does to a session, defined once for all surfaces: its name, the scope it needs, what it takes and what it
 * does. MCP tools, the console and the HTTP API derive theirs from here; how they describe it, read it off the wire and
 * present the result is their own.
 */

/** The caller with the engine that it acts on. `by` names the surface in the log. */
export interface ActingCaller {
  readonly engine: Engine;
  readonly caller: Caller;
  readonly by: string;
}

export type Fields = Readonly<Record<string, z.ZodType>>;

export type ArgumentsOf<F extends Fields> = z.output<ReturnType<typeof z.strictObject<F>>>;

export interface SessionAction<F extends Fields, A, R> {
  readonly name: string;
  /** What a caller needs for it. */
  readonly scope: Scope;
  /** What it takes, and how much of it. */
  readonly fields: F;
  /** Throws PERMISSION_DENIED before anything is done for a caller without the scope. */
  readonly run: (acting: ActingCaller, args: A) => Promise<R>;
}

/** Any of them, for what is asked of all. */
export type AnySessionAction = SessionAction<Fields, never, unknown>;

/** An action that is given its fields as they are. */
export function defineAction<const F extends Fields, R>(
  definition: SessionAction<F, ArgumentsOf<F>, R>,
): SessionAction<F, ArgumentsOf<F>, R> {
  return checked(definition);
}

/** An action that is given a request which each surface puts together: from the fields, and from what it knows itself. */
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
