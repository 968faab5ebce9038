import { type Piece, splitInvisible } from "./words/invisible.ts";
import styles from "./requests.module.css";

/** Shows text of an agent with invisible characters written out and marked; see `splitInvisible`. */
export function EscapedText({ text }: { readonly text: string }) {
  return <bdi>{splitInvisible(text).map(renderPiece)}</bdi>;
}

function renderPiece({ isOdd, text }: Piece, place: number) {
  if (!isOdd) return text;
  return (
    <mark key={place} class={styles["odd"]}>
      {text}
    </mark>
  );
}

const [LINES, CHARACTERS] = [16, 1_000];

/** True if `text` may overflow its box. Overestimates: only a box that scrolls needs a stop of the Tab key. */
export function mayScroll(text: string): boolean {
  return text.length > CHARACTERS || text.split("\n").length > LINES;
}

/** Complete text in its own box. */
export function Code({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <pre class={styles["code"]} dir="ltr" tabIndex={mayScroll(text) ? 0 : undefined} role="group" aria-label={label}>
      <EscapedText text={text} />
    </pre>
  );
}
