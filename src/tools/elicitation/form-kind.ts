import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import type { Form } from "./needs-input.ts";

/** What a person decides, without whom and what it is about. */
export type Decided = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

export interface Place {
  readonly cwd: string;
  /** The line that names the session. */
  readonly where: string;
  /** A rule that denies and that the request cannot be checked against, with the reason. */
  readonly unchecked: string | undefined;
}

/** What is known when a second form is to follow. */
export interface Begun {
  /** Of the first form, kept until the second has come back. */
  readonly filled: JsonObject;
  /** The request is denied from here on: what Claude Code is told where no reason comes. */
  readonly denial?: string;
}

export interface FormKind {
  /** The first lines say what it is about: Claude Code's terminal shows no more of a message than three. */
  show(request: PermissionRequest, place: Place): Form;
  /**
   * Given where a second form asks for words: some clients cannot send a text field that is left empty, so the first form
   * has none.
   */
  begun(request: PermissionRequest, content: Record<string, unknown>): Begun | undefined;
  showSecond(request: PermissionRequest, place: Place, filled: JsonObject): Form;
  /** Of both forms together. Undefined when what was filled in is no answer. */
  read(request: PermissionRequest, content: Record<string, unknown>): Decided | undefined;
  /** Told to Claude Code when the person wants no part of it. */
  readonly declined: string;
}

/** Characters that a person may write beside a decision. */
export const MAX_REASON = 2_000;

/** The form that asks for a reason, or for what should be different. */
export function reasonForm(head: string, key: string, title: string): Form {
  const field = { type: "string" as const, title, description: "What Claude Code is told.", maxLength: MAX_REASON };
  return { message: `${head}\n${CLOSE}`, schema: { type: "object", properties: { [key]: field }, required: [] } };
}

const CLOSE = "Tell it why, or close this form to say nothing more.";
