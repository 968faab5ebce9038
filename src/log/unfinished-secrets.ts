import { lastWordStart } from "../domain/last-word.ts";

/** Finds a possible beginning of a secret at the end of a text that is still growing. */

/** Maximum number of characters held back for an unfinished word. */
const MAX_HELD = 4_096;
/**
 * Maximum length of a URL password with non-word characters. Bounded because a port (`://host:80`) also looks like the
 * beginning of a password: without a bound, text in a language without spaces would be held back forever.
 */
const MAX_PASSWORD = 256;

/** Beginning of a credential in a URL, which cannot contain another `://`. */
const OPEN_URL = /^:\/\/[^\s/@:"]+:[^\s/@"]*$/;

/**
 * Returns the length of the part that can be masked and shown. Excludes the last word, a beginning of one of the `phrases`, and
 * an unfinished password in a URL.
 */
export function finishedLength(text: string, phrases: readonly string[]): number {
  // Repeats, because leaving out the last word can expose the beginning of a phrase before the word.
  for (let length = lastWordStart(text, MAX_HELD); ;) {
    const rest = text.slice(0, length);
    const shorter = Math.min(openUrlStart(rest), ...phrases.map((phrase) => phraseStart(phrase, rest)));
    if (shorter === length) return length;
    length = shorter;
  }
}

/** True if holding back the last word of a text is enough to hold back every beginning of `secret`. */
export function isWord(secret: string): boolean {
  return secret.length <= MAX_HELD && lastWordStart(secret) === 0;
}

function openUrlStart(text: string): number {
  const at = text.lastIndexOf("://");
  return at >= 0 && text.length - at <= MAX_PASSWORD && OPEN_URL.test(text.slice(at)) ? at : text.length;
}

function phraseStart(phrase: string, text: string): number {
  const [first = ""] = phrase;
  for (let from = Math.max(0, text.length - phrase.length + 1); ; from += 1) {
    from = text.indexOf(first, from);
    if (from < 0) return text.length;
    if (phrase.startsWith(text.slice(from))) return from;
  }
}
