import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import type { Form } from "./needs-input.ts";

/** Answer of a person in a form, without the id of the request and the name of the person. */
export type FormDecision = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

export interface SessionContext {
  readonly cwd: string;
  /** Line with title and folder of the session. */
  readonly where: string;
  /** Deny rule that cannot be checked against the request, with the reason. */
  readonly unchecked: string | undefined;
}

/** State between the first and a second form. */
export interface FirstForm {
  /** Content of the first form. */
  readonly filled: JsonObject;
  /**
   * Message to Claude Code if the second form brings no reason. Set only if the first form denies: the request counts as denied
   * at once, whatever the second form brings.
   */
  readonly denial?: string;
}

export interface FormKind {
  /** The first lines must name the subject, because Claude Code's terminal shows only three lines of a message. */
  show(request: PermissionRequest, context: SessionContext): Form;
  /**
   * Returns the state after the first form if a second form must ask for text; otherwise `undefined`. The first form has no
   * text field, because some clients cannot submit an empty one.
   */
  readFirst(request: PermissionRequest, content: Record<string, unknown>): FirstForm | undefined;
  showSecond(request: PermissionRequest, context: SessionContext, filled: JsonObject): Form;
  /** Reads the content of both forms together. Returns `undefined` if the content is not an answer. */
  read(request: PermissionRequest, content: Record<string, unknown>): FormDecision | undefined;
  /** Message for Claude Code if the user declines. */
  readonly declined: string;
}

/** Returns `pageMessage` of a form unless `isWhole`. The first lines name the subject, as in a form. */
export function pageMessage(
  isWhole: boolean,
  lines: readonly string[],
  { where }: SessionContext,
): Pick<Form, "pageMessage"> {
  return isWhole ? {} : { pageMessage: [...lines, PAGE, where].join("\n") };
}

const PAGE = "The page shows all of it and takes your answer. The link works once, for 10 minutes.";

/** Maximum length of the text in `reasonForm`, characters. */
export const MAX_REASON = 2_000;

/** Returns a form with one text field: the reason of a denial, or the wanted changes of a plan. */
export function reasonForm(head: string, key: string, title: string): Form {
  const field = { type: "string" as const, title, description: "Message to Claude Code.", maxLength: MAX_REASON };
  return { message: `${head}\n${CLOSE}`, schema: { type: "object", properties: { [key]: field }, required: [] } };
}

const CLOSE = "Write a message to Claude Code, or close this form to send none.";
