import type { Ask } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import type { Form } from "./needs-input.ts";

/** What a person decides, without whom and what it is about. */
export type Decided = Pick<AnswerRequest, "decision" | "denyMessage" | "updatedInput">;

export interface Place {
  readonly cwd: string;
  /** The line that names the session. */
  readonly where: string;
}

export interface FormKind {
  /** The first lines say what it is about: Claude Code's terminal shows no more of a message than three. */
  show(ask: Ask, place: Place): Form;
  /** Undefined when what was filled in is no answer. */
  read(ask: Ask, content: Record<string, unknown>): Decided | undefined;
  /** Told to Claude Code when the person wants no part of it. */
  readonly declined: string;
}

/** Characters that a person may write beside a decision. */
export const REASON_MOST = 2_000;
