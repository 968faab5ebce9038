import { lastWord } from "../domain/last-word.ts";

/** Finds what may be the beginning of a secret at the end of a text that is still being written. */

/** Characters that are left out at most. */
const MAX_HELD = 4_096;
/** Length of a password in a URL that has other characters than a word: in languages without spaces a port looks like its beginning. */
const MAX_PASSWORD = 256;

/** Beginning of a credential in a URL; no later "://" can stand in it. */
const OPEN_URL = /^:\/\/[^\s/@:"]+:[^\s/@"]*$/;

/** Returns how much of the text can be masked and shown: all but its last word, a beginning of one of the `phrases`, and of a password in a URL. */
export function finishedLength(text: string, phrases: readonly string[]): number {
  // The last word may be the end of what began before it, which is a beginning once the word is left out.
  for (let length = lastWord(text, MAX_HELD); ;) {
    const rest = text.slice(0, length);
    const shorter = Math.min(openUrl(rest), ...phrases.map((phrase) => beginningOf(phrase, rest)));
    if (shorter === length) return length;
    length = shorter;
  }
}

/** The last word of a text has every beginning of such a secret. */
export function isWord(secret: string): boolean {
  return secret.length <= MAX_HELD && lastWord(secret) === 0;
}

function openUrl(text: string): number {
  const at = text.lastIndexOf("://");
  return at >= 0 && text.length - at <= MAX_PASSWORD && OPEN_URL.test(text.slice(at)) ? at : text.length;
}

function beginningOf(phrase: string, text: string): number {
  const [first = ""] = phrase;
  for (let from = Math.max(0, text.length - phrase.length + 1); ; from += 1) {
    from = text.indexOf(first, from);
    if (from < 0) return text.length;
    if (phrase.startsWith(text.slice(from))) return from;
  }
}
