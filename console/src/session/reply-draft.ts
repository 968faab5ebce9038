import { effect } from "@preact/signals";
import { newRetryKey } from "../net/retry-key.ts";
import { me } from "../state/me.ts";

/** What one has begun to write to a session. It stays there while one looks at another view. */
export interface ReplyDraft {
  readonly prompt: string;
  /** However often it is sent, one prompt is taken. */
  readonly key: string;
}

const drafts = new Map<string, ReplyDraft>();

export function draftFor(sessionId: string): ReplyDraft {
  return drafts.get(sessionId) ?? { prompt: "", key: newRetryKey() };
}

export function keepDraft(sessionId: string, prompt: string): ReplyDraft {
  const draft = { prompt, key: newRetryKey() };
  if (prompt === "") drafts.delete(sessionId);
  else drafts.set(sessionId, draft);
  return draft;
}

// What one has written is nothing for whoever signs in after him.
effect(() => {
  if (!me.value) drafts.clear();
});
