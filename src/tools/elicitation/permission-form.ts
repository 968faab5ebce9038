import { z } from "zod";
import { rulesToRemember } from "../../domain/approvals/remembered.ts";
import type { RISK_LEVELS } from "../../domain/approvals/risk.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { MAX_REASON, pageMessage, reasonForm, type FormKind } from "./form-kind.ts";
import { fieldText, fitsField, subjectOf } from "./subject.ts";
import { fitsInLine, escapeControls, toOneLine, type Room } from "./form-text.ts";

/** Form to allow or deny the use of a tool. */

const Filled = z.object({
  decision: z.enum(["allow", "deny", "allow_for_session"]),
  message: z.string().max(MAX_REASON).nullish(),
});

export const PERMISSION: FormKind = {
  declined: "The user does not allow this.",
  show(request, context) {
    const { cwd, unchecked, where } = context;
    const { lines, shownFields, whole } = subjectOf(request, cwd);
    const facts = factsOf(request, unchecked);
    const fields = fieldsOf(request, shownFields);
    const isWhole = fields.isWhole && facts.every(({ length }) => length <= MAX_LINE);
    const shown = [...lines, ...facts.map((fact) => toOneLine(fact, MAX_LINE)), ...fields.lines, where];
    return {
      ...pageMessage(isWhole, lines, context),
      message: shown.join("\n"),
      schema: {
        type: "object",
        properties: {
          decision: {
            type: "string",
            title: "Decision",
            description: whole,
            enum: ["allow", "deny", "allow_for_session"],
            enumNames: ["Allow once", "Deny", sessionLabel(request)],
          },
        },
        required: ["decision"],
      },
    };
  },
  readFirst(_, content) {
    const filled = Filled.safeParse(content).data;
    if (filled?.decision !== "deny" || filled.message?.trim()) return undefined;
    return { filled: { decision: "deny" }, denial: PERMISSION.declined };
  },
  showSecond(request, { cwd, where }) {
    const head = ["Denied. Claude Code asked:", ...subjectOf(request, cwd).lines, where].join("\n");
    return reasonForm(head, "message", "Why not");
  },
  read(_, content) {
    const filled = Filled.safeParse(content).data;
    if (!filled) return undefined;
    const { decision } = filled;
    if (decision !== "deny") return { decision };
    const message = filled.message?.trim() ?? "";
    return { decision, denyMessage: message === "" ? PERMISSION.declined : message };
  },
};

const MAX_LINE = 300;

const RISK: Readonly<Record<(typeof RISK_LEVELS)[number], { word: string; meaning: string }>> = {
  reads: { word: "low", meaning: "reads within the session's folders" },
  edits: { word: "some", meaning: "changes files in the session's folders" },
  all: { word: "high", meaning: "can reach beyond the session's folders" },
};

/** Puts the risk first, so that a client that cuts lines, or shows only the first lines, still shows it. */
function factsOf({ blockedPath, decisionReason, risk }: PermissionRequest, unchecked: string | undefined): string[] {
  return [
    `Risk: ${riskIn(risk)}`,
    ...(unchecked === undefined ? [] : [`Not checked against ${unchecked}`]),
    ...(blockedPath === undefined ? [] : [`Path: ${blockedPath}`]),
    ...(decisionReason === undefined ? [] : [`Reason: ${decisionReason}`]),
  ];
}

function riskIn(risk: PermissionRequest["risk"]): string {
  if (!risk) return "unknown, treated as high";
  const { meaning, word } = RISK[risk.level];
  return risk.why.length > 0 ? `${word} (${risk.why.join(", ")})` : `${word}, ${meaning}`;
}

const MAX_FIELDS = 12;
const ROOM: Room = { characters: 1_600, lines: 40 };

interface ShownFields {
  readonly lines: readonly string[];
  /** True if `lines` leaves nothing out. */
  readonly isWhole: boolean;
}

/** Returns the fields of the input not shown above. The model writes the input, so no field may be hidden by its choice. */
function fieldsOf({ input, toolName }: PermissionRequest, shownFields: readonly string[]): ShownFields {
  const rest = Object.entries(input).filter(([key]) => !shownFields.includes(key));
  if (rest.length === 0) return { lines: [], isWhole: true };
  const line = `With ${escapeControls(JSON.stringify(Object.fromEntries(rest)))}`;
  if (toolName !== "Edit" && toolName !== "Write" && fitsInLine(line)) return { lines: [line], isWhole: true };
  const shown = rest.slice(0, MAX_FIELDS).map(([key, value]) => fieldText(key, value, ROOM));
  const left = rest.length - shown.length;
  const cut = left > 0 ? [`[cut: ${String(left)} more fields are not shown]`] : [];
  const isWhole = left <= 0 && rest.every(([key, value]) => fitsField(key, value, ROOM));
  return { lines: [[...shown, ...cut].join("\n\n"), ""], isWhole };
}

/** Label of `allow_for_session`, with the rules to remember. */
function sessionLabel(request: PermissionRequest): string {
  const rules = rulesToRemember(request);
  if (rules.length === 0) return "Allow (cannot be remembered)";
  return `Allow, and until the session ends also ${toOneLine(rules.join(", "), MAX_RULES)}`;
}

const MAX_RULES = 160;
