import { signal } from "@preact/signals";

/** Warnings of the server by id of the started session, kept until the user dismisses them. */
export const notices = signal<Readonly<Record<string, readonly string[]>>>({});

export function keepNotices(sessionId: string, texts: readonly string[]): void {
  if (texts.length > 0) notices.value = { ...notices.value, [sessionId]: texts };
}

export function dropNotices(sessionId: string): void {
  const { [sessionId]: _, ...others } = notices.value;
  notices.value = others;
}
