import type { PendingRequest } from "../../../../src/console/wire.ts";
import type { RISK_LEVELS } from "../../../../src/domain/approvals/risk.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { count } from "../../parts/format.ts";
import { isObject, textsAt } from "../../parts/json.ts";

/** Describes the subject of a request and chooses a display for the input. */

const ACTS: Readonly<Record<string, string>> = {
  Agent: "start a subagent",
  Bash: "run a command",
  Edit: "change a file",
  Glob: "look for files",
  Grep: "search in files",
  MultiEdit: "change a file",
  NotebookEdit: "change a notebook",
  PowerShell: "run a command",
  Read: "read a file",
  Skill: "use a skill",
  Task: "start a subagent",
  WebFetch: "fetch a page",
  WebSearch: "search the web",
  Write: "write a file",
};

type Named = Pick<PendingRequest, "toolName" | "type" | "input" | "agentId" | "agent">;

/** `isOver`: the request is answered, so the verb is in the past tense. */
export function headline(request: Named, isOver = false): string {
  const { input, toolName, type } = request;
  const asks = isOver ? "asked" : "asks";
  const commands = commandsOf(request);
  if (commands) return `The server ${asks} to verify the work with ${count(commands.length, "command")}`;
  const who = whoAsks(request);
  if (type === "plan") return `${who} has made a plan`;
  if (type === "question") {
    const { questions } = input;
    const number = Array.isArray(questions) ? questions.length : 1;
    const verb = isOver ? "had" : "has";
    return number === 1 ? `${who} ${verb} a question` : `${who} ${verb} ${String(number)} questions`;
  }
  return `${who} ${asks} to ${actOf(toolName)}`;
}

/** Names a subagent by `agent.description`, because several subagents may ask at once. */
function whoAsks({ agent, agentId }: Named): string {
  if (agent && agent.description !== "") return `${agent.description} (subagent)`;
  return agentId === undefined ? "Claude Code" : "A subagent";
}

function actOf(toolName: string): string {
  const act = Object.hasOwn(ACTS, toolName) ? ACTS[toolName] : undefined;
  if (act !== undefined) return act;
  const [, server, tool] = /^mcp__(.+?)__(.+)$/s.exec(toolName) ?? [];
  return server === undefined || tool === undefined ? "use a tool" : `use ${tool} of the MCP server ${server}`;
}

type Level = (typeof RISK_LEVELS)[number] | "unknown";

export const RISK_WORDS: Readonly<Record<Level, { readonly name: string; readonly meaning: string }>> = {
  reads: { name: "Low risk", meaning: "Reads files in the session's folders." },
  edits: { name: "Some risk", meaning: "Changes files in the session's folders." },
  all: { name: "High risk", meaning: "Can reach beyond the session's folders." },
  unknown: { name: "Unknown risk", meaning: "Treat it as high risk." },
};

/** Commands of a verification, which the server itself asks for; `undefined` for any other request. */
export function commandsOf({ input, toolName }: Pick<PendingRequest, "input" | "toolName">) {
  return toolName === "Verification" ? textsAt(input, "commands") : undefined;
}

/** `rest`: fields that the kind does not show. No field of an input is left out. */
export type Shape =
  | { readonly kind: "command"; readonly command: string; readonly description: string; readonly rest: JsonObject }
  | { readonly kind: "commands"; readonly commands: readonly string[]; readonly rest: JsonObject }
  | { readonly kind: "diffs"; readonly path: string; readonly diffs: readonly Change[]; readonly rest: JsonObject }
  | { readonly kind: "fields"; readonly rest: JsonObject };

export interface Change {
  readonly before: string;
  readonly after: string;
}

export function shapeOf({ input, toolName }: Pick<PendingRequest, "input" | "toolName">): Shape {
  const shape = Object.hasOwn(SHAPE_READERS, toolName) ? SHAPE_READERS[toolName]?.(input) : undefined;
  return shape ?? { kind: "fields", rest: input };
}

/** Displays by tool; `undefined` if the input has an unexpected shape. */
const SHAPE_READERS: Readonly<Record<string, (input: JsonObject) => Shape | undefined>> = {
  Bash: commandIn,
  PowerShell: commandIn,
  Verification({ commands: list, ...rest }) {
    const commands = textsAt({ list }, "list");
    return commands && { kind: "commands", commands, rest };
  },
  Write({ content, file_path: path, ...rest }) {
    if (typeof content !== "string" || typeof path !== "string") return undefined;
    return { kind: "diffs", path, diffs: [{ before: "", after: content }], rest };
  },
  Edit({ file_path: path, new_string: after, old_string: before, ...rest }) {
    if (typeof path !== "string" || typeof before !== "string" || typeof after !== "string") return undefined;
    return { kind: "diffs", path, diffs: [{ before, after }], rest };
  },
  MultiEdit({ edits, file_path: path, ...rest }) {
    const diffs = changesIn(edits);
    return typeof path === "string" && diffs ? { kind: "diffs", path, diffs, rest } : undefined;
  },
};

function commandIn({ command, description = "", ...rest }: JsonObject): Shape | undefined {
  if (typeof command !== "string" || typeof description !== "string") return undefined;
  return { kind: "command", command, description, rest };
}

/** `undefined` if an edit has fields that the display would hide. */
function changesIn(edits: unknown): Change[] | undefined {
  if (!Array.isArray(edits)) return undefined;
  const changes = edits.flatMap((edit: unknown): Change[] => {
    if (!isObject(edit)) return [];
    const { new_string: after, old_string: before, replace_all: all = false, ...rest } = edit;
    if (typeof before !== "string" || typeof after !== "string" || all !== false || Object.keys(rest).length > 0)
      return [];
    return [{ before, after }];
  });
  return changes.length === edits.length ? changes : undefined;
}
