import type { Caller } from "../../domain/principal.ts";
import { hasPrompts, type ToolName } from "../../tools/listed.ts";
import type { Prompt } from "./prompt.ts";
import { delegate } from "./delegate.ts";
import { resume } from "./resume.ts";
import { review } from "./review.ts";

/** None where the tools that they speak of are not listed: they would lead nowhere. */
export function promptsOf(listed: readonly ToolName[]): readonly Prompt[] {
  return hasPrompts(listed) ? [delegate, review, resume] : [];
}

/** Whether the caller may do what it leads to. */
export function mayFollow({ scopes }: Pick<Caller, "scopes">, prompt: Pick<Prompt, "scopes">): boolean {
  return prompt.scopes.every((scope) => scopes.includes(scope));
}
