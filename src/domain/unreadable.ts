import type { SessionEvent } from "./event.ts";

/** Why what is stored of a session cannot be read: it is shown as failed and can be deleted, and nothing else. */
export interface Unreadable {
  /** Quotes nothing of what is stored: options can hold secrets. */
  readonly why: string;
  /** A newer server has written it, and can read it. */
  readonly isNewer: boolean;
}

/** `errorSubtype` of a session, or of the end of a turn, that cannot be read. */
export const UNREADABLE = "unreadable";

export function unreadableText({ isNewer, why }: Unreadable): string {
  const advice = `Delete it (claude_code_session, action: delete); "claude-agents-mcp sessions export" writes what is stored of it.`;
  return `The session cannot be read (${why}).${isNewer ? "" : ` ${advice}`}`;
}

/** The type of the event that a notice stands for because it cannot be read. */
export function lostTypeOf({ data, type }: SessionEvent): unknown {
  return type === "notice" && data.kind === "data_loss" ? data.details?.["type"] : undefined;
}
