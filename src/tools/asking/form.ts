import type { Ask } from "../../domain/permission.ts";
import type { Decided, FormKind } from "./form-kind.ts";
import type { Form, FormAnswer } from "./needs-input.ts";
import { PERMISSION } from "./permission-form.ts";
import { PLAN } from "./plan-form.ts";
import { QUESTION } from "./question-form.ts";
import { inline } from "./words.ts";

/** The form for a request of Claude Code, and what it comes to once somebody has filled it in. */

export interface Session {
  readonly title: string | undefined;
  readonly cwd: string;
}

const AGAIN = "The answer was not complete. Answer again, or close this form.\n";
const TITLE_MOST = 80;
const FOLDER_MOST = 200;

export function formOf(ask: Ask, { cwd, title }: Session, again: boolean): Form {
  const named = title === undefined ? "" : ` "${inline(title, TITLE_MOST)}"`;
  const where = `Session${named} in ${inline(cwd, FOLDER_MOST)}`;
  const form = kindOf(ask).show(ask, { cwd, where });
  return again ? { ...form, message: `${AGAIN}${form.message}` } : form;
}

/** `dismissed`: closed without an answer. `unclear`: filled in, and not an answer. */
export function decidedBy(
  ask: Ask,
  answer: Exclude<FormAnswer, { action: "none" }>,
): Decided | "dismissed" | "unclear" {
  const kind = kindOf(ask);
  if (answer.action === "accept") return kind.read(ask, answer.content) ?? "unclear";
  return answer.action === "cancel" ? "dismissed" : { decision: "deny", denyMessage: kind.declined };
}

function kindOf({ kind, toolName }: Ask): FormKind {
  if (kind === "question") return QUESTION;
  return toolName === "ExitPlanMode" ? PLAN : PERMISSION;
}
