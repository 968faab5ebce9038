import { JsonObject } from "../domain/json.ts";

/** A patch larger than this is not kept: the files themselves say what changed. Bytes of JSON, about. */
const PATCH_KEPT = 65_536;
const TEXT_KEPT = 500;
/** Of what a hook has written, characters; Claude Code gives the model more of it than a reader needs. */
const HOOK_OUTPUT_KEPT = 4000;

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

/** `output` is what it wrote to stdout and stderr; both again, alone, say nothing more. */
export function trimHookResponse(message: JsonObject, mask: (text: string) => string): JsonObject {
  const { stdout: _stdout, stderr: _stderr, output, ...rest } = message;
  return { ...rest, ...(typeof output === "string" && { output: mask(output).slice(0, HOOK_OUTPUT_KEPT) }) };
}

function isKept(key: string, value: unknown): boolean {
  if (key === "structuredPatch") return JSON.stringify(value).length <= PATCH_KEPT;
  if (typeof value === "string") return value.length <= TEXT_KEPT;
  return typeof value === "number" || typeof value === "boolean";
}
