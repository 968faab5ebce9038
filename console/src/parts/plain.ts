/**
 * Text of agents as one harmless line or more: colours of terminals are left out, and what would not be seen, or would turn
 * what follows around, is shown for what it is.
 */
export function plain(text: string): string {
  return text.replace(TERMINAL, "").replace(UNSEEN, shown);
}

/** The same on one line. */
export function oneLine(text: string): string {
  return plain(text.replace(/\s+/gu, " ")).trim();
}

/** CSI and OSC sequences, and the short escapes. */
const TERMINAL = new RegExp(String.raw`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])`, "g");

/** Control characters, and those that turn text around or have no width. */
const UNSEEN = /\p{Cc}|\p{Bidi_Control}|[\u{200b}\u{2060}-\u{2064}\u{feff}]/gu;

function shown(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\n" || character === "\t") return character;
  if (character === "\r") return "";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** How a text begins, on one harmless line of at most `most` characters. */
export function glimpse(text: string, most: number): string {
  // Far more is not looked at: it would not be shown.
  const looked = text.slice(0, most * 4);
  const characters = Array.from(oneLine(looked));
  const isCut = characters.length > most || looked.length < text.length;
  return isCut ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}
