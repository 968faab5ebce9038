import type { JsonObject } from "../../../../src/domain/json.ts";
import { truncateLine } from "../../parts/text.ts";
import { textAt, textsAt } from "../../parts/json.ts";

/** Title of a tool call on one line. */

export interface CallTitle {
  /** Action, such as "Edit" or "Read". */
  readonly verb: string;
  /** Object of the verb; "" if clear without. */
  readonly subject: string;
  /** True if `subject` is code or a path. */
  readonly isCode: boolean;
}

/** Verb of each tool, field with the subject, and `isCode`. */
const KNOWN: Readonly<Record<string, readonly [verb: string, field: string, isCode: boolean]>> = {
  Agent: ["Agent", "description", false],
  Task: ["Agent", "description", false],
  AskUserQuestion: ["Question", "", false],
  Bash: ["Bash", "command", true],
  BashOutput: ["Read output", "bash_id", true],
  Edit: ["Edit", "file_path", true],
  MultiEdit: ["Edit", "file_path", true],
  ExitPlanMode: ["Plan", "", false],
  Glob: ["Find files", "pattern", true],
  Grep: ["Search", "pattern", true],
  KillShell: ["Stop", "shell_id", true],
  LS: ["List", "path", true],
  NotebookEdit: ["Edit", "notebook_path", true],
  Read: ["Read", "file_path", true],
  SandboxNetworkAccess: ["Connect to", "host", true],
  Skill: ["Skill", "skill", false],
  TaskOutput: ["Read output", "task_id", true],
  TaskStop: ["Stop", "task_id", true],
  TodoWrite: ["To-do list", "", false],
  ToolSearch: ["Find tools", "query", false],
  Verification: ["Verification", "commands", true],
  WebFetch: ["Fetch", "url", true],
  WebSearch: ["Search the web", "query", false],
  Write: ["Write", "file_path", true],
};

const MAX_SUBJECT_CHARS = 300;

export function callTitle(name: string | undefined, input: JsonObject, cwd: string): CallTitle {
  if (name === undefined) return { verb: "An earlier call", subject: "", isCode: false };
  const known = Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined;
  if (!known) return unknownTool(name, input);
  const [verb, field, isCode] = known;
  const subject = textAt(input, field) ?? textsAt(input, field)?.join(" · ") ?? questionOf(input);
  const kind = verb === "Agent" ? textAt(input, "subagent_type") : undefined;
  return {
    verb: kind === undefined ? verb : `Agent (${truncateLine(kind, 40)})`,
    subject: truncateLine(field.endsWith("path") ? fromFolder(subject, cwd) : subject, MAX_SUBJECT_CHARS),
    isCode,
  };
}

function unknownTool(name: string, input: JsonObject): CallTitle {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/s.exec(name) ?? [];
  const verb = server === undefined || tool === undefined ? name : `${server}: ${tool}`;
  const first = Object.values(input).find((value) => typeof value === "string");
  return {
    verb: truncateLine(verb, 80),
    subject: truncateLine(typeof first === "string" ? first : "", 120),
    isCode: true,
  };
}

function questionOf(input: JsonObject): string {
  const { questions } = input;
  const first: unknown = Array.isArray(questions) ? questions[0] : undefined;
  const isAsked = typeof first === "object" && first !== null && "question" in first;
  return isAsked && typeof first.question === "string" ? first.question : "";
}

/** Returns a path inside the session's folder relative to the folder. */
export function fromFolder(path: string, cwd: string): string {
  const folder = cwd.endsWith("/") ? cwd : `${cwd}/`;
  return cwd !== "" && path.startsWith(folder) && path.length > folder.length ? path.slice(folder.length) : path;
}
