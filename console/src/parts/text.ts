/**
 * Makes text of agents safe to show: drops terminal sequences and writes out invisible and bidirectional characters as
 * ⟨U+XXXX⟩.
 */
export function displayText(text: string): string {
  return text.replace(TERMINAL, "").replace(INVISIBLE, writeOut);
}

/** Like `displayText`, on one line. */
export function displayLine(text: string): string {
  return displayText(text.replace(/\s+/gu, " ")).trim();
}

/** CSI and OSC sequences, and two-character escapes. */
const TERMINAL = new RegExp(String.raw`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`, "g");

/** Control characters, bidirectional controls and characters without width. */
const INVISIBLE = /\p{Cc}|\p{Bidi_Control}|[\u{200b}\u{2060}-\u{2064}\u{feff}]/gu;

function writeOut(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\n" || character === "\t") return character;
  if (character === "\r") return "";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Returns the beginning of `text` on one safe line of at most `most` characters. */
export function truncateLine(text: string, most: number): string {
  // Bounds the work for long texts: `displayLine` sees at most four times `most`.
  const looked = text.slice(0, most * 4);
  const characters = Array.from(displayLine(looked));
  const isCut = characters.length > most || looked.length < text.length;
  return isCut ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}
