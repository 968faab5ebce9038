import type { JsonObject } from "../domain/json.ts";
import { jsonBytes, oneLine } from "./size.ts";

/** Maximum number of characters of a summary. */
const MAX_SUMMARY = 200;

/** Input field with the subject of a call, and the separator between the tool name and the subject. */
const ABOUT: Readonly<Record<string, { key: string; after: string }>> = {
  Agent: { key: "description", after: ": " },
  Bash: { key: "command", after: ": " },
  Edit: { key: "file_path", after: " " },
  ExitPlanMode: { key: "plan", after: ": " },
  Glob: { key: "pattern", after: " " },
  Grep: { key: "pattern", after: " " },
  NotebookEdit: { key: "notebook_path", after: " " },
  Read: { key: "file_path", after: " " },
  SandboxNetworkAccess: { key: "host", after: " " },
  Skill: { key: "skill", after: ": " },
  Task: { key: "description", after: ": " },
  WebFetch: { key: "url", after: " " },
  WebSearch: { key: "query", after: ": " },
  Write: { key: "file_path", after: " " },
};

/** Returns the input field with the subject of a call. */
export function subjectKey(toolName: string): string | undefined {
  return Object.hasOwn(ABOUT, toolName) ? ABOUT[toolName]?.key : undefined;
}

/** Summarizes a call on one line, for people: "Bash: npm test", "Write /path/file (1.2 KB)". */
export function summaryOf(toolName: string, input: JsonObject): string {
  const about = Object.hasOwn(ABOUT, toolName) ? ABOUT[toolName] : undefined;
  const subject = about === undefined ? undefined : input[about.key];
  if (about === undefined || typeof subject !== "string") return oneLine(unknownTool(toolName, input), MAX_SUMMARY);
  const size = typeof input["content"] === "string" ? ` (${readableBytes(Buffer.byteLength(input["content"]))})` : "";
  return oneLine(`${toolName}${about.after}${subject}`, MAX_SUMMARY - size.length) + size;
}

function unknownTool(toolName: string, input: JsonObject): string {
  const question = firstQuestion(input["questions"]);
  if (question !== undefined) return `${toolName}: ${question}`;
  return jsonBytes(input) <= 2 ? toolName : `${toolName} ${JSON.stringify(input)}`;
}

function firstQuestion(questions: unknown): string | undefined {
  const first: unknown = Array.isArray(questions) ? questions[0] : undefined;
  const isAsked = typeof first === "object" && first !== null && "question" in first;
  return isAsked && typeof first.question === "string" ? first.question : undefined;
}

function readableBytes(bytes: number): string {
  if (bytes < 1024) return `${String(bytes)} bytes`;
  const kilobytes = bytes / 1024;
  return kilobytes < 1024 ? `${kilobytes.toFixed(1)} KB` : `${(kilobytes / 1024).toFixed(1)} MB`;
}
