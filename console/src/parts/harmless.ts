/** Text of agents and programs, as it may be shown: nothing in it moves the cursor, hides itself or turns the line around. */

/** What a terminal takes for itself: colours, cursor, titles (ended by BEL or ST), and two-letter commands. */
// eslint-disable-next-line no-control-regex
const TERMINAL =
  /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|[PX^_][^\u001B]*(?:\u001B\\)?|[ -/]*[0-~])/g;
const CONTROL = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]/g;
/** They turn around what stands after them, or are seen by nobody. */
const HIDDEN =
  /[\u0080-\u009F\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB\u{E0000}-\u{E007F}]/gu;

export function harmless(text: string): string {
  return text
    .replace(TERMINAL, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROL, (sign) => (sign === "\u007F" ? "\u2421" : String.fromCodePoint(0x2400 + sign.charCodeAt(0))))
    .replace(HIDDEN, (sign) => `‹U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

/** The same on one line, at most `most` characters long. */
export function harmlessLine(text: string, most: number): string {
  // Far more is not looked at: it would not be shown.
  const line = harmless(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  const characters = Array.from(line);
  return characters.length > most || text.length > most * 4 ? `${characters.slice(0, most - 1).join("")}…` : line;
}
