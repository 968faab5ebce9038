import type { Caller } from "../../domain/principal.ts";
import { hasPrompts, type ToolName } from "../../tools/tool-names.ts";
import type { Prompt } from "./define-prompt.ts";
import { delegate } from "./delegate.ts";
import { resume } from "./resume.ts";
import { review } from "./review.ts";

/** Returns no prompts unless all tools mentioned in them are listed. */
export function availablePrompts(listed: readonly ToolName[]): readonly Prompt[] {
  return hasPrompts(listed) ? [delegate, review, resume] : [];
}

/** True if the caller has all scopes that the steps of the prompt need. */
export function mayUsePrompt({ scopes }: Pick<Caller, "scopes">, prompt: Pick<Prompt, "scopes">): boolean {
  return prompt.scopes.every((scope) => scopes.includes(scope));
}
