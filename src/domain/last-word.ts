/**
 * Where the last word of a text begins, which may go on while the text does: secrets are visible ASCII without a space between. At
 * most `maxChars` before the end; the end itself, where that is the end of a word.
 */
export function lastWord(text: string, maxChars = text.length): number {
  const min = Math.max(0, text.length - maxChars);
  let start = text.length;
  while (start > min && isVisible(text.charCodeAt(start - 1))) start -= 1;
  return start;
}

function isVisible(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

/** The end of a text, `most` characters at most, without half of a surrogate pair at its beginning. */
export function endOf(text: string, most: number): string {
  return text.slice(-most).replace(/^[\udc00-\udfff]/, "");
}
