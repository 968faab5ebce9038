import type { SessionEvent } from "./event.ts";

/** Reason why a stored session cannot be read. The session is shown as failed and can only be deleted. */
export interface Unreadable {
  /** Never quotes stored content, because options can hold secrets. */
  readonly why: string;
  /** True if a newer server, which can read the session, has written it. */
  readonly isNewer: boolean;
}

/** `errorSubtype` of an unreadable session or of an unreadable end of a turn. */
export const UNREADABLE = "unreadable";

export function unreadableText({ isNewer, why }: Unreadable): string {
  const advice = `Delete it (claude_code_session, action: delete); "claude-agents-mcp sessions export" writes what is stored of it.`;
  return `The session cannot be read (${why}).${isNewer ? "" : ` ${advice}`}`;
}

/** Returns the type of the unreadable event that a `data_loss` notice replaces. */
export function lostTypeOf({ data, type }: SessionEvent): unknown {
  return type === "notice" && data.kind === "data_loss" ? data.details?.["type"] : undefined;
}
