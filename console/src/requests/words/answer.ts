import type { AnswerBody, PendingRequest } from "../../../../src/console/wire.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { splitInvisible } from "./invisible.ts";
import { readObject, type ParsedJson } from "./json-error.ts";

/** Builds answers from the forms, and words for accepted answers. */

export function denial(message: string): AnswerBody {
  const said = message.trim();
  return said === "" ? { decision: "deny" } : { decision: "deny", message: said };
}

/** Text of an input to edit: the only or main text field, otherwise the whole input as JSON. */
export interface Editable {
  /** Edited field; `undefined` for the whole input. */
  readonly key?: string;
  readonly text: string;
}

export function editableOf({ input, toolName, type }: Pick<PendingRequest, "input" | "toolName" | "type">): Editable {
  const key = type === "plan" ? "plan" : keyOf(toolName, input);
  const value = key === undefined ? undefined : input[key];
  if (key !== undefined && typeof value === "string") return { key, text: value };
  return { text: escapeAsJson(JSON.stringify(input, undefined, 2)) };
}

/** Writes invisible characters as JSON escapes, so that the user sees them in the editor. */
function escapeAsJson(json: string): string {
  const written = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return splitInvisible(json)
    .map(({ isOdd, raw }) => (isOdd ? raw.replaceAll(/[^]/g, written) : raw))
    .join("");
}

const SHELLS: ReadonlySet<string> = new Set(["Bash", "PowerShell"]);

function keyOf(toolName: string, input: JsonObject): string | undefined {
  if (SHELLS.has(toolName)) return "command";
  const keys = Object.keys(input);
  return keys.length === 1 ? keys[0] : undefined;
}

/** Returns the edited input, or the position of a JSON error. */
export function parseEditedInput(request: Parameters<typeof editableOf>[0], text: string): ParsedJson {
  const { key } = editableOf(request);
  if (key === undefined) return readObject(text);
  return { ok: true, value: { ...request.input, [key]: text } };
}

/** Sends a plain `allow` if `updatedInput` equals the input. */
export function allowWith(request: Pick<PendingRequest, "input">, updatedInput: JsonObject): AnswerBody {
  const isSame = JSON.stringify(updatedInput) === JSON.stringify(request.input);
  return isSame ? { decision: "allow" } : { decision: "allow", updatedInput };
}

type AnsweredRequest = Pick<PendingRequest, "type" | "remember">;

/** Message after the server has accepted the answer. */
export function doneWords(
  { remember, type }: AnsweredRequest,
  { decision, message, updatedInput }: AnswerBody,
): string {
  if (decision === "deny") {
    const what = { permission: "Denied", question: "Declined", plan: "Sent back to planning" }[type];
    return message === undefined ? `${what}.` : `${what}, with your message.`;
  }
  const withChanges = updatedInput === undefined ? "" : " with your changes";
  if (type === "question") return "Answered.";
  if (type === "plan") return `Plan approved${withChanges}.`;
  if (decision === "allow_for_session") return `Allowed. Until the session ends also allowed: ${remember.join(", ")}.`;
  return `Allowed${withChanges}.`;
}
