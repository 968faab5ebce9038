import { truncateLine } from "./text.ts";

/** Title on one safe line; "Session without a name" if `title` is empty, as before the first prompt. */
export function sessionName(title: string): string {
  return title.trim() === "" ? "Session without a name" : truncateLine(title, 200);
}

/** `sessionName` inside other text. `bdi` keeps right-to-left titles from reordering the surrounding words. */
export function SessionName({ title }: { readonly title: string }) {
  return <bdi>{sessionName(title)}</bdi>;
}
