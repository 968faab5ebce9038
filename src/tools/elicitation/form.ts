import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { FirstForm, FormDecision, FormKind } from "./form-kind.ts";
import type { Form, FormAnswer } from "./needs-input.ts";
import { PERMISSION } from "./permission-form.ts";
import { PLAN } from "./plan-form.ts";
import { QUESTION } from "./question-form.ts";
import { toOneLine } from "./form-text.ts";

/** Builds the form for a request of Claude Code, and reads the answer from a submitted form. */

export interface FormSession {
  readonly title: string | undefined;
  readonly cwd: string;
  /** Deny rule that cannot be checked against the request, with the reason. */
  readonly unchecked?: string | undefined;
}

const AGAIN = "The answer was not complete. Answer again, or close this form.\n";
const MAX_TITLE = 80;
const MAX_FOLDER = 200;

interface FormState {
  /** True if the form came back unclear. */
  readonly again?: boolean;
  /** Content of the first form, if the form to show is the second. */
  readonly filled?: JsonObject | undefined;
}

export function buildForm(
  request: PermissionRequest,
  { cwd, title, unchecked }: FormSession,
  { again = false, filled }: FormState = {},
): Form {
  const named = title === undefined ? "" : ` "${toOneLine(title, MAX_TITLE)}"`;
  const where = `Session${named} in ${toOneLine(cwd, MAX_FOLDER)}`;
  const kind = kindOf(request);
  const context = { cwd, where, unchecked };
  const form = filled ? kind.showSecond(request, context, filled) : kind.show(request, context);
  return again ? { ...form, message: `${AGAIN}${form.message}` } : form;
}

/** `dismissed`: closed without an answer. `unclear`: filled in, but no answer. */
export type Verdict = FormDecision | { readonly first: FirstForm } | "dismissed" | "unclear";

/** `filled` is the content of the first form if `answer` is for the second; `last` forbids a further form. */
export function readForm(
  request: PermissionRequest,
  answer: Exclude<FormAnswer, { action: "none" }>,
  { filled, last }: { readonly filled: JsonObject | undefined; readonly last: boolean },
): Verdict {
  const kind = kindOf(request);
  if (filled) {
    const words = answer.action === "accept" ? answer.content : {};
    const decided = kind.read(request, { ...words, ...filled });
    return decided ?? (answer.action === "accept" ? "unclear" : "dismissed");
  }
  if (answer.action !== "accept")
    return answer.action === "cancel" ? "dismissed" : { decision: "deny", denyMessage: kind.declined };
  const first = last ? undefined : kind.readFirst(request, answer.content);
  return first ? { first } : (kind.read(request, answer.content) ?? "unclear");
}

function kindOf({ kind, toolName }: PermissionRequest): FormKind {
  if (kind === "question") return QUESTION;
  return toolName === "ExitPlanMode" ? PLAN : PERMISSION;
}
