import { piecesOf } from "./words/harmless.ts";

/** A text of an agent: only ever text, with what would hide written out and marked. */
export function Plain({ text }: { readonly text: string }) {
  return (
    <bdi>
      {piecesOf(text).map((piece, place) =>
        piece.isOdd ? (
          <mark key={place} class="odd">
            {piece.text}
          </mark>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

/** A text in a box of its own, whole. */
export function Code({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <pre class="rq-code" dir="ltr" tabIndex={0} role="region" aria-label={label}>
      <Plain text={text} />
    </pre>
  );
}
