import { z } from "zod";
import { invalidArgument } from "../../../domain/error.ts";
import type { JsonObject } from "../../../domain/json.ts";
import type { Scope } from "../../../domain/principal.ts";
import type { AnySessionAction, ArgumentsOf, Fields, SessionAction } from "../../../engine/actions/action.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { actingCaller } from "../../scope.ts";

/** One action as claude_code_session offers it. The arguments of all actions lie side by side on the wire. */
export interface OfferedAction {
  readonly name: string;
  readonly scope: Scope;
  readonly fields: Fields;
  /** `given` is what the call has beside `action`, each value valid by itself. */
  run(given: JsonObject, call: ToolCall, deps: ToolDeps): Promise<JsonObject>;
}

interface Offer<F extends Fields, R> {
  /** What is said of its fields. One that several actions take is described alike in each. */
  readonly words?: Partial<Readonly<Record<keyof F, string>>>;
  readonly present: (
    result: R,
    args: ArgumentsOf<F>,
    call: ToolCall,
    deps: ToolDeps,
  ) => JsonObject | Promise<JsonObject>;
}

/** An action with its fields as they are. */
export function offer<F extends Fields, R>(
  action: SessionAction<F, ArgumentsOf<F>, R>,
  { present, words = {} }: Offer<F, R>,
): OfferedAction {
  const run: Run<F> = async (args, call, deps) =>
    present(await action.run(actingCaller(call, deps), args), args, call, deps);
  return { ...offerAs(action, action.fields, run), fields: described(action.fields, words) };
}

type Run<F extends Fields> = (args: ArgumentsOf<F>, call: ToolCall, deps: ToolDeps) => Promise<JsonObject>;

/** An action whose arguments have a form of their own on this wire: `run` makes those of the action of them. */
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

/** What a call of any of the actions may hold; which of it goes with which action is for the action to say. */
export function argumentsOf(actions: readonly OfferedAction[]) {
  const all: Fields = Object.fromEntries(actions.flatMap(({ fields }) => Object.entries(fields)));
  return z.strictObject({
    action: z.enum(actions.map(({ name }) => name)),
    ...z.strictObject(all).partial().shape,
  });
}
