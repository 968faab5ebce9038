import { type Piece, splitInvisible } from "./words/invisible.ts";
import styles from "./requests.module.css";

/** A text of an agent: only ever text, with what would hide written out and marked. */
export function EscapedText({ text }: { readonly text: string }) {
  return <bdi>{splitInvisible(text).map(shown)}</bdi>;
}

function shown({ isOdd, text }: Piece, place: number) {
  if (!isOdd) return text;
  return (
    <mark key={place} class={styles["odd"]}>
      {text}
    </mark>
  );
}

const [LINES, CHARACTERS] = [16, 1_000];

/** What does not scroll needs no place in the order of the Tab key; this is on the safe side. */
export function mayScroll(text: string): boolean {
  return text.length > CHARACTERS || text.split("\n").length > LINES;
}

/** A text in a box of its own, whole. */
export function Code({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <pre class={styles["code"]} dir="ltr" tabIndex={mayScroll(text) ? 0 : undefined} role="group" aria-label={label}>
      <EscapedText text={text} />
    </pre>
  );
}
