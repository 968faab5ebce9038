/**
 * Characters that steer a terminal, or turn the order of what follows: what others have said must not be able to rewrite
 * the reader's screen.
 */
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export function stripControlChars(text: string, keep = ""): string {
  return text.replaceAll(STEERING, (character) => (keep.includes(character) ? character : ""));
}

/** As \u and four digits, which in a JSON text stand for the same. */
export function escapeControlChars(text: string): string {
  return text.replaceAll(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
