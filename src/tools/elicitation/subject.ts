import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { indentedBlock, escapeControls, fitsRoom, inFewLines, inOneLine, shortened, type Room } from "./form-text.ts";

/** Describes a request in a form: first lines, because some clients show no more, and the full text. */

interface ToolWording {
  readonly verb: string;
  /** Input field with the subject of the call. */
  readonly key: string;
  /** Further input fields to approve. */
  readonly detail?: readonly string[];
  /** Input field with an unchecked claim of the model. */
  readonly idle?: string;
}

const RUN = { verb: "Run:", key: "command", idle: "description" };
/** Named in the first line of a call, so never shown as a detail. */
const UNSANDBOXED_FIELD = "dangerouslyDisableSandbox";
const UNSANDBOXED: ToolWording = { ...RUN, verb: "Run outside the sandbox:" };
const START = { verb: "Start a subagent:", key: "description", detail: ["prompt"] };

const WORDINGS: Readonly<Record<string, ToolWording>> = {
  Agent: START,
  Bash: RUN,
  Edit: { verb: "Edit", key: "file_path", detail: ["old_string", "new_string"] },
  Glob: { verb: "Find files:", key: "pattern" },
  Grep: { verb: "Search files for:", key: "pattern" },
  NotebookEdit: { verb: "Edit", key: "notebook_path", detail: ["new_source"] },
  PowerShell: RUN,
  Read: { verb: "Read", key: "file_path" },
  SandboxNetworkAccess: { verb: "Connect from the sandbox to", key: "host", detail: ["port"] },
  Skill: { verb: "Use the skill:", key: "skill", detail: ["args"] },
  Task: START,
  WebFetch: { verb: "Fetch", key: "url", detail: ["prompt"] },
  WebSearch: { verb: "Search the web for:", key: "query" },
  Write: { verb: "Write", key: "file_path", detail: ["content"] },
};

export interface Subject {
  /** At most two lines. */
  readonly lines: readonly string[];
  /** Input fields shown in full by `lines`. */
  readonly shownFields: readonly string[];
  /** Everything to approve, on a single line. */
  readonly whole: string;
}

export function subjectOf({ agentId, input, toolName }: PermissionRequest, cwd: string): Subject {
  const who = agentId === undefined ? "" : "Subagent: ";
  const act = findWording(toolName, input);
  const about = act && input[act.key];
  if (!act || typeof about !== "string") {
    const verb = `${who}Use ${inOneLine(toolName)}`;
    const fields = JSON.stringify(input);
    const { isWhole, lines } = inFewLines(Object.keys(input).length === 0 ? verb : `${verb}: ${fields}`);
    return { lines, shownFields: isWhole ? Object.keys(input) : [], whole: shortened(`${verb}: ${inOneLine(fields)}`) };
  }
  const verb = `${who}${act.verb}`;
  const named = act.key.endsWith("_path") ? relativeTo(about, cwd) : about;
  const { isWhole, lines } = inFewLines(`${verb} ${named}${sizeOf(input)}`);
  const details = (act.detail ?? []).flatMap((key) => detailOf(key, input[key]));
  const whole = [`${verb} ${inOneLine(named)}`, ...details, ...restOf(act, input)].filter((part) => part !== "");
  const isPlain = isWhole && !about.includes("\n");
  const shownFields = [...(isPlain ? [act.key] : []), ...(act === UNSANDBOXED ? [UNSANDBOXED_FIELD] : [])];
  return { lines, shownFields, whole: shortened(whole.join(": ")) };
}

function findWording(toolName: string, input: JsonObject): ToolWording | undefined {
  const act = Object.hasOwn(WORDINGS, toolName) ? WORDINGS[toolName] : undefined;
  return act === RUN && input[UNSANDBOXED_FIELD] === true ? UNSANDBOXED : act;
}

/** Returns all other input fields, except `false` and `null`. */
function restOf(act: ToolWording, input: JsonObject): string[] {
  const said = [act.key, act.idle, ...(act.detail ?? []), ...(act === UNSANDBOXED ? [UNSANDBOXED_FIELD] : [])];
  const isSaid = (key: string, value: unknown) => said.includes(key) || value === false || value === null;
  const rest = Object.entries(input).filter(([key, value]) => value !== undefined && !isSaid(key, value));
  return rest.length === 0 ? [] : [inOneLine(`With ${JSON.stringify(Object.fromEntries(rest))}`)];
}

/** Makes a path inside the session's folder relative. */
function relativeTo(path: string, cwd: string): string {
  const isInside = path.startsWith(cwd) && /^[/\\]./.test(path.slice(cwd.length));
  return isInside ? path.slice(cwd.length + 1) : path;
}

function sizeOf({ content, new_string: now, old_string: before, replace_all: all }: JsonObject): string {
  if (typeof content === "string") return ` (${countOf(content)})`;
  if (typeof before !== "string" || typeof now !== "string") return "";
  return ` (${countOf(before)} become ${String(linesIn(now))}${all === true ? ", at every place" : ""})`;
}

function countOf(text: string): string {
  const lines = linesIn(text);
  return lines === 1 ? "1 line" : `${String(lines)} lines`;
}

/** Counts no line after a trailing line break. */
function linesIn(text: string): number {
  return text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
}

/** Line prefixes of text fields, as in a diff. */
const MARKS: Readonly<Record<string, string>> = { content: "", new_source: "", new_string: "+ ", old_string: "- " };

function detailOf(key: string, value: unknown): string[] {
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [inOneLine(`${MARKS[key] ?? ""}${text.replaceAll("\n", `\n${MARKS[key] ?? ""}`)}`)];
}

/** Maximum length of the name of an input field, characters. */
const MAX_KEY = 60;

/** True if `fieldText` leaves nothing out. */
export function fitsField(key: string, value: unknown, room: Room): boolean {
  return key.length <= MAX_KEY && fitsRoom(valueText(value), room);
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
}

/** Formats an input field, indented. Fields in `MARKS` have a prefix in place of their name. */
export function fieldText(key: string, value: unknown, room: Room): string {
  const text = valueText(value);
  const mark = Object.hasOwn(MARKS, key) ? MARKS[key] : undefined;
  return mark === undefined
    ? `${escapeControls(JSON.stringify(key.slice(0, MAX_KEY)))}:\n${indentedBlock(text, room)}`
    : indentedBlock(text, room, mark);
}
