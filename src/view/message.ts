import { z } from "zod";
import { CallBlock, OutcomeBlock, TextBlock, textOf } from "../domain/blocks.ts";
import { JsonObject } from "../domain/json.ts";
import { briefInput, briefOutput, type Brief } from "./brief.ts";
import { firstCharacters, fit, oneLine } from "./size.ts";

/** Shortens messages of Claude Code to the parts useful to the model of a caller. */

export interface Shown {
  readonly type: "output" | "progress";
  readonly data: JsonObject;
}

/** Length of a shown tool call: as short as possible, or with more of its input and output. */
type Brevity = "brief" | "short";

/** Maximum size of a tool's input beside its name, bytes of JSON. */
const INPUT_SHOWN = 400;
/** Maximum number of characters of a tool's output. */
const OUTPUT_SHOWN = 500;

const Block = z.discriminatedUnion("type", [TextBlock, CallBlock, OutcomeBlock]);
type Block = z.infer<typeof Block>;

const Spoken = z.object({
  type: z.enum(["assistant", "user"]),
  parent_tool_use_id: z.string().nullish(),
  error: z.string().optional(),
  message: z.object({ content: z.array(z.unknown()) }),
  tool_use_result: JsonObject.optional().catch(undefined),
});
type Spoken = z.infer<typeof Spoken>;

const Init = z.object({ subtype: z.literal("init"), model: z.string(), tools: z.array(z.unknown()) });

const TaskEnded = z.object({
  subtype: z.literal("task_notification"),
  task_id: z.string(),
  status: z.string(),
  summary: z.string().catch(""),
});

/** Returns `undefined` for hidden messages: thinking, replays, unknown types, and results (shown at the end of the turn). */
export function presentMessage(message: JsonObject, brevity: Brevity): Shown | undefined {
  const spoken = Spoken.safeParse(message);
  if (spoken.success)
    return spoken.data.type === "assistant"
      ? presentOutput(spoken.data, brevity)
      : presentToolResults(spoken.data, brevity);
  if (message["type"] !== "system") return presentOptional(message);
  return presentSystem(message, brevity) ?? presentOptional(message);
}

function presentOutput(spoken: Spoken, brevity: Brevity): Shown | undefined {
  const blocks = blocksOf(spoken);
  const text = blocks.flatMap((block) => (block.type === "text" && block.text !== "" ? [block.text] : [])).join("\n");
  const [call, ...others] = blocks.flatMap((block) => (block.type === "tool_use" ? [toolCall(block, brevity)] : []));
  const data: JsonObject = {
    ...(text !== "" && { text }),
    ...call,
    ...(others.length > 0 && { others }),
    ...(spoken.error !== undefined && { error: spoken.error }),
  };
  if (Object.keys(data).length === 0) return undefined;
  return { type: "output", data: { ...data, ...byAgent(spoken) } };
}

function presentToolResults(spoken: Spoken, brevity: Brevity): Shown | undefined {
  const results = blocksOf(spoken).flatMap((block) =>
    block.type === "tool_result" ? [toolResult(block, brevity, spoken.tool_use_result)] : [],
  );
  const [first, ...others] = results;
  if (first === undefined) return undefined;
  return { type: "progress", data: { ...first, ...(others.length > 0 && { others }), ...byAgent(spoken) } };
}

function presentSystem(message: JsonObject, brevity: Brevity): Shown | undefined {
  const init = brevity === "brief" ? undefined : Init.safeParse(message);
  if (init?.success) return { type: "progress", data: { model: init.data.model, tools: init.data.tools.length } };
  const task = TaskEnded.safeParse(message);
  if (!task.success) return undefined;
  const { task_id: id, status, summary } = task.data;
  return { type: "progress", data: { backgroundTask: { id, status, summary } } };
}

function blocksOf({ message }: Spoken): Block[] {
  return message.content.flatMap((block) => {
    const known = Block.safeParse(block);
    return known.success ? [known.data] : [];
  });
}

function toolCall({ id, name, input }: Extract<Block, { type: "tool_use" }>, brevity: Brevity): JsonObject {
  if (brevity === "short") return { tool: name, input: fit(input, INPUT_SHOWN).value, toolUseId: id };
  const brief = briefInput(name, input);
  return { tool: name, input: brief.value, ...(brief.cut && { inputCut: true }), toolUseId: id };
}

type ToolResult = Extract<Block, { type: "tool_result" }>;

function toolResult(result: ToolResult, brevity: Brevity, structured: JsonObject | undefined): JsonObject {
  const { tool_use_id: toolUseId, content, is_error } = result;
  const ok = is_error !== true;
  // `ok` is enough for a successful edit, which Claude Code confirms in many words.
  if (brevity === "brief" && ok && structured?.["structuredPatch"] !== undefined) return { toolUseId, ok };
  const text = textOf(content);
  const { cut, value: output } = brevity === "brief" ? briefOutput(text, ok ? "good" : "failed") : shortOutput(text);
  return { toolUseId, ok, output, ...(cut && { outputCut: true }) };
}

function shortOutput(text: string): Brief<string> {
  const shown = firstCharacters(text, OUTPUT_SHOWN);
  const cut = shown.length < text.length;
  return { value: cut ? `${shown}…` : shown, cut };
}

/** `agentId` is the id of the Agent call, for messages of its subagent. */
function byAgent({ parent_tool_use_id: id }: Spoken): JsonObject {
  return typeof id === "string" ? { agentId: id } : {};
}

/** Messages sent by Claude Code only if an option of the session requests them. */

interface OptionalMessage {
  readonly type: "progress";
  readonly data: JsonObject;
}

/** Maximum number of characters of a hook's output, a task's summary or a suggestion. */
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

function presentOptional(message: JsonObject): OptionalMessage | undefined {
  const known = Message.safeParse(message);
  return known.success ? { type: "progress", data: JsonObject.parse(known.data) } : undefined;
}
