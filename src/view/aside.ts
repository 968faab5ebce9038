import { z } from "zod";
import { JsonObject } from "../domain/json.ts";
import { oneLine } from "./size.ts";

/** Messages that Claude Code sends only where an option of the session asks for them. */

interface Aside {
  readonly type: "progress";
  readonly data: JsonObject;
}

/** Of the output of a hook, the summary of a task and a suggestion, in characters. */
const SHOWN = 500;

const line = z.string().transform((text) => oneLine(text, SHOWN));

const Message = z.union([
  z
    .object({
      subtype: z.literal("hook_response"),
      hook_name: line,
      outcome: z.string(),
      exit_code: z.number().optional(),
      output: line.catch(""),
    })
    .transform(({ hook_name: hook, outcome, exit_code: exitCode, output }) => {
      return { hook: { name: hook, outcome, ...(exitCode !== undefined && { exitCode }), ...(output && { output }) } };
    }),
  z
    .object({ subtype: z.literal("task_progress"), task_id: z.string(), summary: line })
    .transform(({ task_id: id, summary }) => ({ backgroundTask: { id, status: "running", summary } })),
  z
    .object({ type: z.literal("prompt_suggestion"), suggestion: line })
    .transform(({ suggestion }) => ({ promptSuggestion: suggestion })),
]);

export function presentAside(message: JsonObject): Aside | undefined {
  const known = Message.safeParse(message);
  return known.success ? { type: "progress", data: JsonObject.parse(known.data) } : undefined;
}
