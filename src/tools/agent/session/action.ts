import { z } from "zod";
import { invalidArgument } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import type { Scope } from "../../../domain/principal.ts";
import type { AnySessionAction, ArgumentsOf, Fields, SessionAction } from "../../../engine/actions/action.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { actingCaller } from "../../scope.ts";

/** Action as offered by `claude_code_session`, whose input has the fields of all actions side by side. */
export interface OfferedAction {
  readonly name: string;
  readonly scope: Scope;
  readonly fields: Fields;
  /** `given` has all arguments of the call except `action`. Each is valid by its own schema; `run` checks the set. */
  run(given: JsonObject, call: ToolCall, deps: ToolDeps): Promise<JsonObject>;
}

interface Offer<F extends Fields, R> {
  /** Descriptions of fields. A field of several actions needs an equal description in each. */
  readonly words?: Partial<Readonly<Record<keyof F, string>>>;
  readonly present: (
    result: R,
    args: ArgumentsOf<F>,
    call: ToolCall,
    deps: ToolDeps,
  ) => JsonObject | Promise<JsonObject>;
}

/** Offers an action with its own fields. */
export function offer<F extends Fields, R>(
  action: SessionAction<F, ArgumentsOf<F>, R>,
  { present, words = {} }: Offer<F, R>,
): OfferedAction {
  const run: Run<F> = async (args, call, deps) =>
    present(await action.run(actingCaller(call, deps), args), args, call, deps);
  return { ...offerAs(action, action.fields, run), fields: described(action.fields, words) };
}

type Run<F extends Fields> = (args: ArgumentsOf<F>, call: ToolCall, deps: ToolDeps) => Promise<JsonObject>;

/** Offers an action with different fields; `run` converts the arguments for the action. */
export function offerAs<F extends Fields>(
  { name, scope }: Pick<AnySessionAction, "name" | "scope">,
  fields: F,
  run: Run<F>,
): OfferedAction {
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

function described(fields: Fields, words: Readonly<Record<string, string | undefined>>): Fields {
  const entries = Object.entries(fields).map(([name, field]) => {
    const text = words[name];
    return [name, text === undefined ? field : field.describe(text)] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the schema of the tool: all fields of all actions, optional. `run` refuses fields of another action. */
export function argumentsOf(actions: readonly OfferedAction[]) {
  const all: Fields = Object.fromEntries(actions.flatMap(({ fields }) => Object.entries(fields)));
  return z.strictObject({
    action: z.enum(actions.map(({ name }) => name)),
    ...z.strictObject(all).partial().shape,
  });
}
