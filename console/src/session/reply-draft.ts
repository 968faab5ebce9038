import { newRetryKey } from "../net/retry-key.ts";
import { own } from "../state/own.ts";

/** What one has begun to write to a session. It stays there while one looks at another view. */
export interface ReplyDraft {
  readonly prompt: string;
  /** However often it is sent, one prompt is taken. */
  readonly key: string;
}

const drafts = own(() => new Map<string, ReplyDraft>());

export function draftFor(sessionId: string): ReplyDraft {
  return drafts.peek().get(sessionId) ?? { prompt: "", key: newRetryKey() };
}

export function keepDraft(sessionId: string, prompt: string): ReplyDraft {
  const draft = { prompt, key: newRetryKey() };
  if (prompt === "") drafts.peek().delete(sessionId);
  else drafts.peek().set(sessionId, draft);
  return draft;
}
