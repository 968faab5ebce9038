/** Scripts of a scripted model: schema, place in prompts, and choice of the entry for a request. */
import { z } from "zod";

import { Plan } from "./plan.ts";

const Milliseconds = z.int().min(0).max(3_600_000);
const Count = z.int().min(1);
const Tokens = z.int().min(0).max(1_000_000_000);
const GateName = z.string().min(1);

const ToolCall = z.strictObject({
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
  /** Default: a unique id. */
  id: z.string().min(1).optional(),
});

const ApiError = z.strictObject({
  status: z.literal([400, 401, 403, 404, 413, 429, 500, 529]),
  /** Value of the header `retry-after`, seconds. */
  retryAfterSeconds: z.number().min(0).optional(),
  /** Error type of Anthropic. Default: the type that belongs to `status`. */
  type: z.string().min(1).optional(),
  message: z.string().optional(),
  /** Headers about the plan. */
  plan: Plan.optional(),
  /** Alternative to `times` of the entry. */
  times: Count.optional(),
});

const Usage = z.strictObject({
  input_tokens: Tokens.optional(),
  output_tokens: Tokens.optional(),
  cache_read_input_tokens: Tokens.optional(),
  cache_creation_input_tokens: Tokens.optional(),
});

/** Entry of a script: texts and tool calls, delays, and a fault that comes first. All fields are optional. */
export const Reply = z
  .strictObject({
    thinking: z.string().optional(),
    /** An array is streamed as one delta per element. */
    text: z.union([z.string(), z.array(z.string())]).optional(),
    tools: z.array(ToolCall).optional(),
    stopReason: z.enum(["end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal"]).optional(),
    usage: Usage.optional(),
    /** Headers about the plan, with the content. */
    plan: Plan.optional(),
    /** Delay before the headers. */
    delayMs: Milliseconds.optional(),
    /** Delay between streamed deltas. */
    chunkDelayMs: Milliseconds.optional(),
    /** Gate to wait for before the headers. */
    gateBefore: GateName.optional(),
    /** Gate to wait for after the headers (and `message_start`). */
    gate: GateName.optional(),
    error: ApiError.optional(),
    hang: z.enum(["before-headers", "mid-stream"]).optional(),
    cut: z.literal(true).optional(),
    malformed: z.literal(true).optional(),
    /** Number of requests that get the fault before the content is served. */
    times: Count.optional(),
  })
  .check(({ value: reply, issues }) => {
    const faults = [reply.error, reply.hang, reply.cut, reply.malformed].filter((fault) => fault !== undefined).length;
    const complain = (message: string) => issues.push({ code: "custom", message, input: reply });
    if (faults > 1) complain('an entry can have only one of "error", "hang", "cut" and "malformed"');
    if (faults === 0 && reply.times !== undefined) complain('"times" counts a fault, and this entry has none');
    if (reply.times !== undefined && reply.error?.times !== undefined) complain('"times" is given twice');
  });
export type Reply = z.infer<typeof Reply>;

export const Script = z.array(Reply);
export type Script = z.infer<typeof Script>;

/** Invalid script. The message says why. */
export class ScriptError extends Error {
  override readonly name = "ScriptError";
}

/** Parses the text of a script. Throws ScriptError. */
export function parseScript(json: string): Script {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new ScriptError(`the script is not JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const parsed = Script.safeParse(value);
  if (!parsed.success) throw new ScriptError(`the script is not valid:\n${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

const OPEN = "<model-script>";
const CLOSE = "</model-script>";

/** Returns a script in the form used in prompts. */
export function scriptTag(script: Script): string {
  return OPEN + JSON.stringify(script) + CLOSE;
}

/** Returns the JSON of the last script in a prompt. Scripts nested in its strings (a subagent's prompt) belong to it. */
export function scriptIn(prompt: string): string | undefined {
  let last: string | undefined;
  let open = prompt.indexOf(OPEN);
  while (open >= 0) {
    const start = open + OPEN.length;
    const end = closingTag(prompt, start);
    if (end < 0) break;
    last = prompt.slice(start, end);
    open = prompt.indexOf(OPEN, end + CLOSE.length);
  }
  return last;
}

/**
 * Returns the index of the first closing tag outside JSON strings. In broken JSON: of the last one, so that parsing reports the
 * error.
 */
function closingTag(prompt: string, start: number): number {
  let inString = false;
  for (let i = start; i < prompt.length; i++) {
    const char = prompt[i];
    if (inString && char === "\\") i++;
    else if (char === '"') inString = !inString;
    else if (!inString && char === "<" && prompt.startsWith(CLOSE, i)) return i;
  }
  const end = prompt.lastIndexOf(CLOSE);
  return end < start ? -1 : end;
}

export type FaultKind = "error" | "hang" | "cut" | "malformed";

/** Returns the fault of an entry and the number of requests that get it. */
export function faultOf(reply: Reply): { readonly kind: FaultKind; readonly times: number } | undefined {
  if (reply.error) return { kind: "error", times: reply.times ?? reply.error.times ?? 1 };
  const kind = reply.hang ? "hang" : reply.cut ? "cut" : reply.malformed ? "malformed" : undefined;
  return kind && { kind, times: reply.times ?? 1 };
}

/** Part of a script for a single request: `entry` is a number, `fault` is set if the entry misbehaves for now. */
export interface Step {
  readonly entry: number;
  readonly reply: Reply;
  readonly fault: FaultKind | undefined;
}

/**
 * Returns the step for a request after `answers` answers of this script and `attempt` earlier tries. A fault adds no answer, so
 * an entry with only a fault is played before the entry after it. Returns `undefined` after the end.
 */
export function stepAt(script: Script, answers: number, attempt: number): Step | undefined {
  let answered = 0;
  let tries = attempt;
  for (const [entry, reply] of script.entries()) {
    const fault = faultOf(reply);
    const speaks = !fault || [reply.text, reply.thinking, reply.tools].some((content) => content !== undefined);
    if (answered < answers) {
      if (speaks) answered++;
      continue;
    }
    if (fault && tries < fault.times) return { entry, reply, fault: fault.kind };
    tries -= fault?.times ?? 0;
    if (speaks) return { entry, reply, fault: undefined };
  }
  return undefined;
}
