import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { CallBlock, OutcomeBlock, TextBlock, textOf, ThinkingBlock } from "../../view/blocks.ts";

/** What a message of Claude Code says, thinks, calls and gets back: all that a conversation tells of it. */

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly thinking: string }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly kind: "outcome"; readonly id: string; readonly output: string; readonly success: boolean };

const Block = z.discriminatedUnion("type", [TextBlock, ThinkingBlock, CallBlock, OutcomeBlock]);

const Spoken = z.object({
  type: z.enum(["assistant", "user"]),
  parent_tool_use_id: z.string().nullish(),
  message: z.object({ content: z.array(z.unknown()) }),
});

/** `byAgent`: of a subagent, whose words are for the main conversation and not for the caller. */
export function partsOf(message: JsonObject): { readonly parts: readonly Part[]; readonly byAgent: boolean } {
  const spoken = Spoken.safeParse(message).data;
  if (!spoken) return { parts: [], byAgent: false };
  const isAssistant = spoken.type === "assistant";
  const parts = spoken.message.content.flatMap((block) => {
    const part = partOf(block);
    // What a user message says in words is the prompt.
    return part && (part.kind === "outcome") !== isAssistant ? [part] : [];
  });
  return { parts, byAgent: typeof spoken.parent_tool_use_id === "string" };
}

function partOf(block: unknown): Part | undefined {
  const known = Block.safeParse(block).data;
  switch (known?.type) {
    case "text":
      return known.text === "" ? undefined : { kind: "text", text: known.text };
    case "thinking":
      return known.thinking === "" ? undefined : { kind: "thinking", thinking: known.thinking };
    case "tool_use":
      return { kind: "call", id: known.id, name: known.name, input: known.input };
    case "tool_result":
      return {
        kind: "outcome",
        id: known.tool_use_id,
        output: textOf(known.content),
        success: known.is_error !== true,
      };
    case undefined:
      return undefined;
  }
}
