import { z } from "zod";
import { JsonObject } from "./json.ts";

/** Parts of a Claude Code message visible to callers. */

export const TextBlock = z.object({ type: z.literal("text"), text: z.string() });
export const ThinkingBlock = z.object({ type: z.literal("thinking"), thinking: z.string() });
export const CallBlock = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: JsonObject.catch({}),
});
export const OutcomeBlock = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.unknown().optional(),
  is_error: z.boolean().optional(),
});

/** Returns a tool's output as text. A part without text, such as an image, becomes its type in brackets: `[image]`. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts: unknown[] = Array.isArray(content) ? content : [];
  return parts.map((part) => ToolText.parse(part)).join("\n");
}

const ToolText = z.union([
  TextBlock.transform(({ text }) => text),
  z.object({ type: z.string() }).transform(({ type }) => `[${type}]`),
  z.unknown().transform(() => "[?]"),
]);
