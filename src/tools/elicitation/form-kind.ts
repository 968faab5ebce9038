import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import type { Form } from "./needs-input.ts";

/** Decision of a person, without the request and the name of the person. */
export type Decided = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

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
  /** Set if the request is denied from now on. Message for Claude Code if the second form gives no reason. */
  readonly denial?: string;
}

export interface FormKind {
  /** The first lines must name the subject, because Claude Code's terminal shows only three lines of a message. */
  show(request: PermissionRequest, place: SessionContext): Form;
  /**
   * Returns a value if a second form has to ask for text. Some clients cannot submit an empty text field, so the first form has
   * no text field.
   */
  begun(request: PermissionRequest, content: Record<string, unknown>): FirstForm | undefined;
  showSecond(request: PermissionRequest, place: SessionContext, filled: JsonObject): Form;
  /** Reads the content of both forms together. Returns `undefined` if the content is no answer. */
  read(request: PermissionRequest, content: Record<string, unknown>): Decided | undefined;
  /** Message for Claude Code if the user declines. */
  readonly declined: string;
}

/** Maximum number of characters of a text beside a decision. */
export const MAX_REASON = 2_000;

/** Returns the form for a reason, or for changes wanted. */
export function reasonForm(head: string, key: string, title: string): Form {
  const field = { type: "string" as const, title, description: "Message to Claude Code.", maxLength: MAX_REASON };
  return { message: `${head}\n${CLOSE}`, schema: { type: "object", properties: { [key]: field }, required: [] } };
}

const CLOSE = "Write a message to Claude Code, or close this form to send none.";
