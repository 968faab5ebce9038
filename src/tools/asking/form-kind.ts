import type { Ask } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import type { Form } from "./needs-input.ts";

/** What a person decides, without whom and what it is about. */
export type Decided = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

export interface FormKind {
  /** `where` is the line that names the session. */
  show(ask: Ask, where: string): Form;
  /** Undefined when what was filled in is no answer. */
  read(ask: Ask, content: Record<string, unknown>): Decided | undefined;
  /** Told to Claude Code when the person wants no part of it. */
  readonly declined: string;
}

/** Characters that a person may write beside a decision. */
export const REASON_MOST = 2_000;
