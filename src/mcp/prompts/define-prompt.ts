import { z } from "zod";
import type { Caller, Scope } from "../../domain/principal.ts";
import { parseArguments } from "../../tools/arguments/parse.ts";
import type { ToolLimits } from "../../tools/arguments/wait-limits.ts";
import type { ArgumentKind } from "./completions.ts";
import type { ToolDeps } from "../../tools/define.ts";

/** Templates that a person picks at the client for the model. Independent of the protocol. */

interface PromptArgument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  /** Kind of completions for the argument. */
  readonly kind: ArgumentKind | undefined;
}

/** `limits`: those of the caller's client. */
export interface PromptCaller extends Caller {
  readonly limits: ToolLimits;
}

export interface Prompt {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly arguments: readonly PromptArgument[];
  readonly scopes: readonly Scope[];
  /** Throws `AppError`. */
  text(raw: unknown, caller: PromptCaller, deps: () => Promise<ToolDeps>): Promise<string>;
}

interface PromptDefinition<I extends z.ZodObject> extends Omit<Prompt, "arguments" | "text"> {
  readonly input: I;
  /** Kinds of completions, by argument. */
  readonly kinds: Readonly<Partial<Record<keyof z.output<I>, ArgumentKind>>>;
  readonly write: (args: z.output<I>, caller: PromptCaller, deps: () => Promise<ToolDeps>) => Promise<string> | string;
}

export function definePrompt<I extends z.ZodObject>(definition: PromptDefinition<I>): Prompt {
  const { description, input, kinds, name, scopes, title, write } = definition;
  const kindOf = new Map<string, ArgumentKind | undefined>(Object.entries(kinds));
  const { properties = {}, required = [] } = z.toJSONSchema(input, { io: "input" });
  return {
    name,
    title,
    description,
    scopes,
    arguments: Object.entries(properties).map(([argument, schema]) => ({
      name: argument,
      description: typeof schema === "object" ? (schema.description ?? "") : "",
      required: required.includes(argument),
      kind: kindOf.get(argument),
    })),
    text: async (raw, caller, deps) => write(parseArguments(input, withoutEmptyStrings(raw), []), caller, deps),
  };
}

/** Removes empty strings, because a form sends "" for an empty field. */
function withoutEmptyStrings(raw: unknown): unknown {
  if (typeof raw !== "object" || raw === null) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== ""));
}

/** Returns the `waitMs` of a call that begins a turn. A client whose calls wait by default, or that follows tasks, needs none. */
export function shortWait({ followsTasks = false, waitsByDefault = false }: ToolLimits): { readonly waitMs?: number } {
  return followsTasks || waitsByDefault ? {} : { waitMs: 30_000 };
}
