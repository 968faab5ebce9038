/**
 * Returns the index at which the last, perhaps unfinished word of `text` begins. A secret is visible ASCII without spaces, so
 * an unfinished secret begins no earlier. Looks back at most `maxChars`; returns `text.length` if the last word is complete.
 */
export function lastWordStart(text: string, maxChars = text.length): number {
  const min = Math.max(0, text.length - maxChars);
  let start = text.length;
  while (start > min && isVisible(text.charCodeAt(start - 1))) start -= 1;
  return start;
}

function isVisible(code: number): boolean {
  return code > 0x20 && code < 0x7f;
}

/** Returns the last `most` characters of `text`, without half a surrogate pair at the start. */
export function lastCharacters(text: string, most: number): string {
  return text.slice(-most).replace(/^[\udc00-\udfff]/, "");
}
