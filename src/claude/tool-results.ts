import { JsonObject } from "../domain/json.ts";

/** A patch larger than this is not kept: the files themselves say what changed. Bytes of JSON, about. */
const PATCH_KEPT = 65_536;
const TEXT_KEPT = 500;

/**
 * The structured output of a tool doubles the size of its message with whole file bodies. Kept are the patch, short
 * texts (paths, ids, states) and numbers; what the model was told stands in the message anyway.
 */
export function trimToolResult(message: JsonObject): JsonObject {
  const { tool_use_result: output, ...rest } = message;
  const parsed = JsonObject.safeParse(output);
  if (!parsed.success) return rest;
  const kept = Object.entries(parsed.data).filter(([key, value]) => isKept(key, value));
  return kept.length === 0 ? rest : { ...rest, tool_use_result: Object.fromEntries(kept) };
}

function isKept(key: string, value: unknown): boolean {
  if (key === "structuredPatch") return JSON.stringify(value).length <= PATCH_KEPT;
  if (typeof value === "string") return value.length <= TEXT_KEPT;
  return typeof value === "number" || typeof value === "boolean";
}
