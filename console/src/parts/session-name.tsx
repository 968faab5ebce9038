import { truncateLine } from "./text.ts";

/** What to call a session that has this title: on one harmless line. It has none before its first prompt. */
export function sessionName(title: string): string {
  return title.trim() === "" ? "Session without a name" : truncateLine(title, 200);
}

/** The same among other words: those of another script do not turn them around. */
export function SessionName({ title }: { readonly title: string }) {
  return <bdi>{sessionName(title)}</bdi>;
}
