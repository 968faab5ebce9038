/** Finds characters in text of agents that hide, move a cursor or change the writing direction. */

/** Part of a text: unchanged, or an invisible character (`isOdd`) written out. */
export interface Piece {
  readonly text: string;
  /** Original characters. */
  readonly raw: string;
  readonly isOdd: boolean;
}

const ODD = /\p{Cs}|[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;

export function splitInvisible(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const { 0: odd, index } of text.matchAll(ODD)) {
    if (index > from) pieces.push(asItIs(text.slice(from, index)));
    pieces.push({ text: writtenOut(odd), raw: odd, isOdd: true });
    from = index + odd.length;
  }
  if (from < text.length) pieces.push(asItIs(text.slice(from)));
  return pieces;
}

/** Like `splitInvisible`, for places that take only text, such as a notification or an attribute. */
export function escapeInvisible(text: string): string {
  return splitInvisible(text)
    .map((piece) => piece.text)
    .join("");
}

function asItIs(text: string): Piece {
  return { text, raw: text, isOdd: false };
}

export function isOdd(text: string): boolean {
  return splitInvisible(text).some((piece) => piece.isOdd);
}

function writtenOut(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}
