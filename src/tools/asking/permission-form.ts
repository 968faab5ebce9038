import { z } from "zod";
import { rulesToRemember } from "../../domain/approvals/remembered.ts";
import type { RISK_LEVELS } from "../../domain/approvals/risk.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Ask } from "../../domain/permission.ts";
import { subjectKey } from "../present/summary.ts";
import { REASON_MOST, type FormKind } from "./form-kind.ts";
import { block, harmless, inline, type Room } from "./words.ts";

/** May Claude Code use a tool in this way? */

const Filled = z.object({
  decision: z.enum(["allow", "deny", "allow_for_session"]),
  message: z.string().max(REASON_MOST).nullish(),
});

export const PERMISSION: FormKind = {
  declined: "The user does not allow this.",
  show: (ask, where) => ({
    message: [`${headOf(ask)}\n${where}`, ...bodyOf(ask)].join("\n\n"),
    schema: {
      type: "object",
      properties: {
        decision: {
          type: "string",
          title: "Decision",
          enum: ["allow", "deny", "allow_for_session"],
          enumNames: ["Allow once", "Deny", lasting(ask)],
        },
        message: {
          type: "string",
          title: "Why not",
          description: "With deny: what Claude Code is told. May be left empty.",
          maxLength: REASON_MOST,
        },
      },
      required: ["decision"],
    },
  }),
  read(_, content) {
    const filled = Filled.safeParse(content).data;
    if (!filled) return undefined;
    const { decision } = filled;
    if (decision !== "deny") return { decision };
    const message = filled.message?.trim() ?? "";
    return { decision, denyMessage: message === "" ? PERMISSION.declined : message };
  },
};

const ACTS: Readonly<Record<string, string>> = {
  Agent: "start a subagent",
  Bash: "run a command",
  Edit: "change a file",
  NotebookEdit: "change a notebook",
  Read: "read a file",
  WebFetch: "fetch a page",
  WebSearch: "search the web",
  Write: "write a file",
};

const LINE_MOST = 300;

function headOf(ask: Ask): string {
  const { agentId, toolName } = ask;
  const act = Object.hasOwn(ACTS, toolName) ? ACTS[toolName] : undefined;
  const tool = inline(toolName, 100);
  const who = agentId === undefined ? "Claude Code" : "A subagent of Claude Code";
  return act === undefined ? `${who} asks to use the tool ${tool}.` : `${who} asks to ${act} (${tool}).`;
}

const RISK: Readonly<Record<(typeof RISK_LEVELS)[number], string>> = {
  reads: "low, it looks at what is in the session's folders",
  edits: "some, it changes files in the session's folders",
  all: "high, it can reach beyond the session's folders",
};

function bodyOf({ blockedPath, decisionReason, input, risk, toolName }: Ask): string[] {
  const said = [
    ...(risk ? [`Risk: ${RISK[risk.level]}${risk.why.length > 0 ? ` (${risk.why.join(", ")})` : ""}`] : []),
    ...(decisionReason === undefined ? [] : [`Why it asks: ${decisionReason}`]),
    ...(blockedPath === undefined ? [] : [`Path: ${blockedPath}`]),
  ];
  const lines = said.map((line) => inline(line, LINE_MOST)).join("\n");
  return [...(lines === "" ? [] : [lines]), ...fieldsOf(toolName, input)];
}

const FIELDS_MOST = 12;
const ROOM: Room = { characters: 1_600, lines: 40 };
/** What one text is to become another. */
const MARKS: Readonly<Record<string, string>> = { old_string: "- ", new_string: "+ " };

/** The input field by field, first what the call is about: whoever writes the input does not choose what is seen of it. */
function fieldsOf(toolName: string, input: JsonObject): string[] {
  const subject = subjectKey(toolName);
  const entries = Object.entries(input).toSorted(([one], [other]) => rank(one, subject) - rank(other, subject));
  const shown = entries.slice(0, FIELDS_MOST).map(([key, value]) => fieldOf(key, value));
  const left = entries.length - shown.length;
  return left > 0 ? [...shown, `[cut: ${String(left)} more fields are not shown]`] : shown;
}

function rank(key: string, subject: string | undefined): number {
  return key === subject ? 0 : 1;
}

function fieldOf(key: string, value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  return `${harmless(key.slice(0, 60))}:\n${block(text, ROOM, MARKS[key])}`;
}

/** What "allow for the session" leaves behind. */
function lasting(ask: Ask): string {
  const rules = rulesToRemember(ask);
  if (rules.length === 0) return "Allow (this one cannot be remembered)";
  return `Allow, and until the session ends also ${inline(rules.join(", "), RULES_MOST)}`;
}

const RULES_MOST = 160;
