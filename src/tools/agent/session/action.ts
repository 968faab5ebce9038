import { z } from "zod";
import { invalidArgument } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import type { Scope } from "../../../domain/principal.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";

/** One thing that claude_code_session does. The arguments of all actions lie side by side on the wire. */
export interface SessionAction {
  readonly name: string;
  /** What a caller needs for it. */
  readonly scope: Scope;
  readonly fields: z.core.$ZodLooseShape;
  /** `given` is what the call has beside `action`, each value valid by itself. */
  run(given: JsonObject, call: ToolCall, deps: ToolDeps): Promise<JsonObject>;
}

interface Definition<F extends z.core.$ZodLooseShape> extends Pick<SessionAction, "name" | "scope"> {
  /** The arguments it takes. One that several actions take has the same schema in each. */
  readonly fields: F;
  readonly run: (args: z.output<z.ZodObject<F>>, call: ToolCall, deps: ToolDeps) => Promise<JsonObject>;
}

export function defineAction<F extends z.core.$ZodLooseShape>({
  name,
  scope,
  fields,
  run,
}: Definition<F>): SessionAction {
  const schema = z.strictObject(fields);
  return {
    name,
    scope,
    fields,
    run: async (given, call, deps) => {
      const parsed = schema.safeParse(given);
      if (parsed.success) return run(parsed.data, call, deps);
      const [issue] = parsed.error.issues;
      if (issue?.code !== "unrecognized_keys") {
        throw invalidArgument(String(issue?.path[0]), `is required for action ${name}.`);
      }
      const taken = Object.keys(fields).join(", ");
      throw invalidArgument(String(issue.keys[0]), `is not for action ${name}, which takes: ${taken}.`);
    },
  };
}

/** What a call of any of the actions may hold; which of it goes with which action is for the action to say. */
export function argumentsOf(actions: readonly SessionAction[]) {
  const all: z.core.$ZodLooseShape = Object.fromEntries(actions.flatMap(({ fields }) => Object.entries(fields)));
  return z.strictObject({
    action: z.enum(actions.map(({ name }) => name)),
    ...z.strictObject(all).partial().shape,
  });
}
