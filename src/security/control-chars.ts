/** Characters that control a terminal or change the direction of text: foreign text must not rewrite the reader's screen. */
const CONTROL_CHARS = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export function stripControlChars(text: string, keep = ""): string {
  return text.replaceAll(CONTROL_CHARS, (character) => (keep.includes(character) ? character : ""));
}

/** Replaces control characters by `\u` and four digits, which JSON reads as the original characters. */
export function escapeControlChars(text: string): string {
  return text.replaceAll(CONTROL_CHARS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
